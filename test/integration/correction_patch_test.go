package integration

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// A patched field is owned by a separate entry, which an apply does not release: the field
// would stay.
func TestCorrectionPatch_ReleasesFieldThatSpecNoLongerSets(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "mend")
	cc := cache(ns, "sessions", one)
	cc.Spec.Pod = &v1alpha1.PodSpec{MinReadySeconds: 5}
	create(t, cc)
	isReady(t, cc)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}

	edit(t, one, set, func() { set.Spec.MinReadySeconds = 9 })
	eventually(t, "minReadySeconds is corrected", func(context.Context) error {
		reload(t, lab.Members[one].Client, set)
		if set.Spec.MinReadySeconds != 5 {
			return fmt.Errorf("it is %d", set.Spec.MinReadySeconds)
		}
		return nil
	})
	if !drift.HasPatchedFields(set) {
		t.Fatalf("it was not patched, so this tests nothing: %v", set.ManagedFields)
	}
	isReady(t, cc)
	at := set.ResourceVersion
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Pod.MinReadySeconds = 0; cc.Spec.Replicas = ptr.To[int32](3) })
	eventually(t, "the new spec is there, without minReadySeconds", func(context.Context) error {
		reload(t, lab.Members[one].Client, set)
		if set.Spec.MinReadySeconds != 0 || *set.Spec.Replicas != 3 {
			return fmt.Errorf("minReadySeconds %d, replicas %d", set.Spec.MinReadySeconds, *set.Spec.Replicas)
		}
		return nil
	})
	if drift.HasPatchedFields(set) || at == set.ResourceVersion {
		t.Errorf("the entry of the patch is still there: %v", set.ManagedFields)
	}
	isReady(t, cc)
	if n := countOf(t, cc, one); n != 1 {
		t.Errorf("%d drifts were counted, want the one", n)
	}
}

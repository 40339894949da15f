package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestMergeManagedFields_KeepsCachedObject(t *testing.T) {
	all := desired(t)
	set := &all[1]
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	live := typed(t, ownedAlsoBy(t, applied(t, set, replicas), v1alpha1.FieldManager, replicas)).(*appsv1.StatefulSet)
	before := live.DeepCopy()
	sent := &member{}

	if err := applierTo(sent).mergeManagedFields(t.Context(), &Step{Desired: *set, Action: Update, Live: live}); err != nil {
		t.Fatal(err)
	}

	if len(sent.applied) != 1 {
		t.Errorf("%d patches were sent, want one", len(sent.applied))
	}
	if diff := cmp.Diff(before.ManagedFields, live.ManagedFields, cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("the object is shared by all readers of the cache:\n%s", diff)
	}
}

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestDecide_DetectsReplicasThatAdmissionChanged(t *testing.T) {
	all := desired(t)
	for _, c := range []struct {
		name   string
		policy drift.Policy
		// omitted is true where an autoscaler owns the replicas, so the intent omits them.
		omitted bool
		live    *int32
		want    Action
	}{
		{"as applied", drift.Policy{}, false, ptr.To[int32](1), None},
		{"changed by admission", drift.Policy{}, false, ptr.To[int32](3), Correct},
		{"changed by admission, under Report", drift.Policy{Report: true}, false, ptr.To[int32](3), ReportOnly},
		{"an ignore rule for all managers", drift.Policy{Ignore: []drift.Rule{{Kind: statefulSet, Path: "spec.replicas"}}}, false, ptr.To[int32](3), None},
		{"an ignore rule for one manager", drift.Policy{Ignore: []drift.Rule{{Path: "spec.replicas", Manager: "autoscaler"}}}, false, ptr.To[int32](3), Correct},
		{"owned by an autoscaler", drift.Policy{}, true, ptr.To[int32](3), None},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := all[1]
			live := typed(t, applied(t, &d)).(*appsv1.StatefulSet)
			live.Spec.Replicas = c.live
			if c.omitted {
				d.Intent = d.Intent.DeepCopy()
				unstructured.RemoveNestedField(d.Intent.Object, "spec", "replicas")
			}
			o := owner
			o.DriftPolicy, o.Typer = c.policy, typer
			if is := decide(d, live, &o, nil); is.Action != c.want {
				t.Errorf("%s, want %s", is.Action, c.want)
			}
		})
	}
}

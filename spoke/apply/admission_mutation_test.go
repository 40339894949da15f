package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestReplicasOfOursThatAreOthersThanWasAppliedAreNoMatterOfOwnership(t *testing.T) {
	all := desired(t)
	for _, c := range []struct {
		name   string
		policy drift.Policy
		// yielded: an autoscaler's, so that the intent lacks them.
		yielded bool
		live    *int32
		want    Action
	}{
		{"as applied", drift.Policy{}, false, ptr.To[int32](1), None},
		{"changed by admission", drift.Policy{}, false, ptr.To[int32](3), Correct},
		{"changed by admission, under Report", drift.Policy{Report: true}, false, ptr.To[int32](3), ReportOnly},
		{"left to everybody", drift.Policy{Ignore: []drift.Rule{{Kind: statefulSet, Path: "spec.replicas"}}}, false, ptr.To[int32](3), None},
		{"left to another manager", drift.Policy{Ignore: []drift.Rule{{Path: "spec.replicas", Manager: "autoscaler"}}}, false, ptr.To[int32](3), Correct},
		{"an autoscaler's", drift.Policy{}, true, ptr.To[int32](3), None},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := all[1]
			live := typed(t, applied(t, &d)).(*appsv1.StatefulSet)
			live.Spec.Replicas = c.live
			if c.yielded {
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

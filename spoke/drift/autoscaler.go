package drift

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Range is the range of replicas that an autoscaler can set on the StatefulSet.
type Range struct{ Min, Max int32 }

var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// scaled reports whether the replicas are within the range of an autoscaler. Replicas outside
// of it are drift.
func (p *Policy) scaled(kind string, live metav1.Object) bool {
	if len(p.Scalers) == 0 || kind != "StatefulSet" {
		return false
	}
	replicas, ok := replicasOf(live)
	if !ok {
		return false
	}
	for _, r := range p.Scalers {
		if int64(r.Min) <= replicas && replicas <= int64(r.Max) {
			return true
		}
	}
	return false
}

func replicasOf(live metav1.Object) (int64, bool) {
	switch o := live.(type) {
	case *appsv1.StatefulSet:
		if o.Spec.Replicas != nil {
			return int64(*o.Spec.Replicas), true
		}
	case *unstructured.Unstructured:
		replicas, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return replicas, found && err == nil
	}
	return 0, false
}

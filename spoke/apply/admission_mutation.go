package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// mutatedReplicas reports whether a StatefulSet has other replicas than its intent, although
// the hub owns the field, and returns both numbers. An admission webhook can change what is
// applied, and the field manager stays. Of all fields, only replicas are checked: without
// them, the number of pods that must be ready is unknown.
func (s *Step) mutatedReplicas(live metav1.Object, policy *drift.Policy) (observed, desired int64, mutated bool) {
	set, ok := live.(*appsv1.StatefulSet)
	if !ok || set.Spec.Replicas == nil || policy.Ignores(statefulSet, replicas) {
		return 0, 0, false
	}
	desired, found, err := unstructured.NestedInt64(s.Intent.Object, "spec", "replicas")
	observed = int64(*set.Spec.Replicas)
	return observed, desired, found && err == nil && observed != desired
}

// mutationFailure returns the failure of a child that admission changed while it was
// written, or nil. A new child is not checked until the next reconcile, so that its cache
// gets the other children.
func (s *Step) mutationFailure(applied metav1.Object, policy *drift.Policy) *failure.Failure {
	observed, desired, mutated := s.mutatedReplicas(applied, policy)
	if !mutated || s.Action == Create {
		return nil
	}
	return &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonRejectedByPolicy,
		Message: fmt.Sprintf("%s: spec.replicas is %d after %d was applied: an admission webhook or policy of the member changes it", s.Key(), observed, desired),
		Hint:    "exempt the namespace from the webhook or policy in the member, or set replicas to a value that it allows"}
}

// mutatedDrift returns the drift that remains after admission changed a write.
func (s *Step) mutatedDrift(applied metav1.Object) RemainingDrift {
	return RemainingDrift{Key: s.Key(), Fields: drift.NewFields(replicas), Intent: s.Intent, Found: applied, Refused: true}
}

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

// altered says that a StatefulSet of ours has other replicas than its intent, and for how
// many: an admission webhook can change what is applied, and the field stays ours. Of all
// fields this is the one without which nobody knows how many pods are to be ready.
func (s *Step) altered(live metav1.Object, policy *drift.Policy) (is, wanted int64, altered bool) {
	set, ok := live.(*appsv1.StatefulSet)
	if !ok || set.Spec.Replicas == nil || policy.Ignores(statefulSet, replicas) {
		return 0, 0, false
	}
	wanted, found, err := unstructured.NestedInt64(s.Intent.Object, "spec", "replicas")
	is = int64(*set.Spec.Replicas)
	return is, wanted, found && err == nil && is != wanted
}

// keptAltered is the failure of a child that was written and is other than it was sent.
// A new one is left to the next look, so that its cache gets the other children.
func (a *Applier) keptAltered(step *Step, applied metav1.Object, report *Report) (failed, stop bool) {
	is, wanted, altered := step.altered(applied, &a.Owner.DriftPolicy)
	if !altered || step.Action == Create {
		return false, false
	}
	report.keep(step, applied)
	a.Writes.Tried(step.Key(), a.Namespace)
	report.Remaining = append(report.Remaining, RemainingDrift{Key: step.Key(), Fields: drift.NewFields(replicas), Intent: step.Intent, Found: applied, Refused: true})
	return true, report.fail(&failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonRejectedByPolicy,
		Message: fmt.Sprintf("%s: spec.replicas is %d after %d was applied: an admission webhook or policy of the member changes it", step.Key(), is, wanted),
		Hint:    "exempt the namespace from it in the member, or ask for what it allows"})
}

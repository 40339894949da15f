package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Open is what differs and stays so.
type RemainingDrift struct {
	Key    Key
	Fields *drift.Fields
	// Deleted: the whole child. Foreign: fields that others added to the pod template.
	// Refused: the member refuses to have it put right.
	Deleted, Foreign, Refused bool
	Intent                    *unstructured.Unstructured
	Found                     metav1.Object
}

// leave notes what differs. A child that is gone stays in the inventory: without its
// entry it would be a new child the next time, and be created.
func (a *Applier) leave(step *Step, report *Report) {
	key := step.Key()
	if step.Live != nil {
		report.keep(step, step.Live)
	} else {
		for _, e := range a.Owner.Inventory {
			if keyOf(e) == key {
				report.Inventory = append(report.Inventory, e)
			}
		}
	}
	if step.Deferred {
		report.Deferred = append(report.Deferred, key)
		return
	}
	report.Remaining = append(report.Remaining, RemainingDrift{Key: key, Fields: step.Drift.Missing, Deleted: step.Deleted, Intent: step.Intent, Found: step.Live})
}

// refused notes a repair that the member does not take: what drifted is still so.
func (a *Applier) refused(step *Step, failed *failure.Failure, report *Report) (stop bool) {
	a.leave(step, report)
	report.Remaining[len(report.Remaining)-1].Refused = true
	// Nothing that was tried before went through.
	a.Writes.Tried(step.Key(), a.Namespace)
	if failed.Reason == v1alpha1.ReasonRejected && step.Live != nil {
		failed.Hint = "undo in the member what was changed there, which the status names, or delete " + step.Key().String() + ": it is created anew"
	}
	return report.fail(failed)
}

// reclaims says that what drifted has the right values, and only somebody else holds it.
func (s *Step) reclaims() bool {
	return s.Drift.Missing != nil && drift.Differing(s.Intent, s.Live, s.Drift.Missing).Empty()
}

// repairs says that a step undoes what somebody else did.
func (s *Step) repairs() bool {
	return s.Action == Correct || s.Action == RemoveForeign || s.Action == Create && s.Deleted
}

package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Open is what differs and stays so.
type Open struct {
	Key    Key
	Fields *drift.Fields
	// Deleted: the whole child. Foreign: fields that others added to the pod template.
	Deleted, Foreign bool
	Intent           *unstructured.Unstructured
	Found            metav1.Object
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
	if step.Fought {
		report.Fought = append(report.Fought, key)
		return
	}
	report.Open = append(report.Open, Open{Key: key, Fields: step.Finding.Missing, Deleted: step.Deleted, Intent: step.Intent, Found: step.Live})
}

// reclaims says that what drifted has the right values, and only somebody else holds it.
func (s *Step) reclaims() bool {
	return s.Finding.Missing != nil && drift.Differing(s.Intent, s.Live, s.Finding.Missing).Empty()
}

// repairs says that a step undoes what somebody else did.
func (s *Step) repairs() bool {
	return s.Verb == Repair || s.Verb == Strip || s.Verb == Create && s.Deleted
}

package apply

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// recreate replaces a child, in steps that may each be the last one of a manager:
//
//  1. The inventory notes it. Only once that is saved is anything deleted, so that
//     whoever finds the child gone knows why.
//  2. The API server checks the successor under another name, without writing it:
//     pods must not lose their StatefulSet to one that would be refused.
//  3. The child is deleted by its UID; pods and claims of a StatefulSet are orphaned.
//  4. What is absent is created, as always. The note is dropped when the StatefulSet
//     controller has seen the new one, and so has adopted the pods.
func (a *Applier) recreate(ctx context.Context, step *Step, report *Report) (stop bool) {
	key := step.Key()
	noted := entry(key, step.Live)
	noted.Recreating = true
	if !step.Recreating {
		report.Inventory = append(report.Inventory, noted)
		return report.fail(step.Failure)
	}
	if err := a.checkSuccessor(ctx, step); err != nil {
		report.Inventory = append(report.Inventory, noted)
		return report.fail(failure.Of(err, "recreate", key.String()))
	}
	gone, err := a.gone(ctx, Target{Key: key, UID: step.Live.GetUID(), Propagation: propagation(key)})
	if err != nil || !gone {
		report.Inventory = append(report.Inventory, noted)
		if err != nil {
			return report.fail(failure.Of(err, "recreate", key.String()))
		}
		return report.fail(step.Failure)
	}
	successor := Step{Desired: step.Desired, Action: Create, Recreating: true}
	stop = a.step(ctx, &successor, report)
	report.keepInventory([]v1alpha1.InventoryEntry{noted})
	return stop
}

// propagation with which a child is deleted to be recreated.
func propagation(key Key) metav1.DeletionPropagation {
	if key.Kind == render.StatefulSetKind {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// A Service's name has 63 characters at most.
const suffixLength, longestBase = 5, 63 - 1 - suffixLength

// checkSuccessor asks under a name that nobody else chooses: of another object the API
// server would say what is wrong with joining it.
func (a *Applier) checkSuccessor(ctx context.Context, step *Step) error {
	successor := Step{Desired: step.Desired, Action: Create}
	successor.Intent = step.Intent.DeepCopy()
	name := step.Intent.GetName()
	successor.Intent.SetName(name[:min(len(name), longestBase)] + "-" + utilrand.String(suffixLength))
	// Applied, as the successor will be: a create passes over fields that the member
	// does not know.
	_, err := a.send(ctx, &successor, []client.PatchOption{client.DryRunAll})
	if f := failure.Of(err, "recreate", step.Key().String()); f != nil && f.Reason == v1alpha1.ReasonQuotaExceeded {
		// The successor takes its predecessor's place in the quota.
		return nil
	}
	return err
}

// adopted says whether a StatefulSet's controller has seen it. Until then pods that
// it shall adopt have no owner, and deleting it would leave them behind.
func adopted(object metav1.Object) bool {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return o.Status.ObservedGeneration > 0
	case *unstructured.Unstructured:
		if o.GetKind() != statefulSet {
			return true
		}
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return observed > 0
	default:
		return true
	}
}

// Recreating is the child that is being recreated, if there is one.
func (o Owner) Recreating() (Target, bool) {
	for _, e := range o.Inventory {
		if e.Recreating {
			return Target{Key: keyOf(e), UID: e.UID}, true
		}
	}
	return Target{}, false
}

package apply

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// A child is recreated in steps. The manager may end after each of them:
//
//  1. The inventory notes the recreation. Nothing is deleted before the note is saved, so
//     that a manager which finds the child absent knows why.
//  2. Resolve sends a dry run of the successor under another name. Pods must not lose their
//     StatefulSet to a successor that the API server refuses.
//  3. Execute deletes the child by its UID. The pods and claims of a StatefulSet are
//     orphaned.
//  4. Execute creates the successor. The note is removed when the StatefulSet controller has
//     observed the successor, and so has adopted the pods.

// mayRecreate reports whether the user allows the recreation, and it is possible.
func (o *Owner) mayRecreate(changes []immutableChange) bool {
	return len(changes) > 0 && o.Policies.Recreate == v1alpha1.RecreateOrphanPods &&
		!slices.ContainsFunc(changes, func(c immutableChange) bool { return c.obstacle != "" })
}

// recreating returns the failure of a child while it is being recreated.
func recreating(key Key) *failure.Failure {
	message := fmt.Sprintf("%s is being deleted and created again", key)
	if key.Kind == children.StatefulSetKind {
		message = fmt.Sprintf("%s is being recreated, and its running pods stay", key)
	}
	return &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonRecreating, Message: message}
}

// A Service's name has 63 characters at most.
const suffixLength, maxBaseLength = 5, 63 - 1 - suffixLength

// checkSuccessor returns a noted recreation as one that can start, or with the failure of
// the successor. The dry run uses a random name: under the name of the child, the API server
// would merge the successor with the child.
func (a *Applier) checkSuccessor(ctx context.Context, step *Step) (Step, error) {
	successor := Step{Desired: step.Desired, Action: Create}
	successor.Intent = step.Intent.DeepCopy()
	name := step.Intent.GetName()
	successor.Intent.SetName(name[:min(len(name), maxBaseLength)] + "-" + utilrand.String(suffixLength))
	checked := *step
	// An apply, because a create ignores fields that the member does not know.
	_, _, err := a.applyIntent(ctx, &successor, client.DryRunAll)
	checked.Failure = failure.Of(err, "recreate", step.Key().String())
	switch {
	case aborts(checked.Failure):
		return Step{}, &abortError{key: step.Key(), failure: checked.Failure}
	case checked.Failure != nil && checked.Failure.Reason == v1alpha1.ReasonQuotaExceeded:
		// The successor takes the place of the child in the quota.
		checked.Failure = nil
	}
	return checked, nil
}

// recreate deletes a child and creates its successor.
func (a *Applier) recreate(ctx context.Context, owner *Owner, step *Step) Result {
	noted := entry(step.Key(), step.Live)
	noted.Recreating = true
	result := Result{Key: step.Key(), Action: Recreate, Entry: &noted, Failure: step.Failure}
	if step.Failure != nil {
		return result
	}
	target := Target{Key: step.Key(), UID: step.Live.GetUID()}
	var gone bool
	_, err := a.delete(ctx, target, propagation(target.Key))
	if err == nil {
		gone, err = a.gone(ctx, target)
	}
	switch {
	case err != nil:
		result.Failure = failure.Of(err, "recreate", step.Key().String())
		return result
	case !gone:
		result.Failure = recreating(step.Key())
		return result
	}
	successor := Step{Desired: step.Desired, Action: Create, Recreating: true}
	applied, _, err := a.applyIntent(ctx, &successor)
	created := a.applied(owner, &successor, applied, err)
	created.Action = Recreate
	if created.Entry == nil {
		created.Entry = &noted
	}
	return created
}

// propagation returns how a child is deleted to be recreated.
func propagation(key Key) metav1.DeletionPropagation {
	if key.Kind == children.StatefulSetKind {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// adopted reports whether the controller of a StatefulSet has observed it. Before that, the
// pods that it will adopt have no owner, and its deletion would orphan them.
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

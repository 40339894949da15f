package apply

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// Removal is the outcome for one target of Remove or Release.
type Removal struct {
	Target Target
	// Done is true where the target is deleted or released. Otherwise it still exists, or its
	// state is unknown.
	Done bool
	// Failure is why the removal failed, or nil.
	Failure *failure.Failure
}

// RemainingTargets returns the targets that are not removed yet.
func RemainingTargets(removals []Removal) []Target {
	var remaining []Target
	for i := range removals {
		if !removals[i].Done {
			remaining = append(remaining, removals[i].Target)
		}
	}
	return remaining
}

// RemovalFailures returns the failures of removals, in order.
func RemovalFailures(removals []Removal) []*failure.Failure {
	var failures []*failure.Failure
	for i := range removals {
		if f := removals[i].Failure; f != nil {
			failures = append(failures, f)
		}
	}
	return failures
}

// Remove deletes every target, StatefulSets first. It is called again until all are done.
//
// Services and budgets stay until the StatefulSets and their pods are deleted: clients find
// a pod for as long as it runs, and a drain in the meantime still spares the other pods.
func (a *Applier) Remove(ctx context.Context, targets []Target) []Removal {
	var sets, others []Target
	for _, target := range targets {
		if target.Key.Kind == children.StatefulSetKind {
			sets = append(sets, target)
		} else {
			others = append(others, target)
		}
	}
	removals := a.removeEach(ctx, Delete, sets, a.deleteTarget)
	if len(RemainingTargets(removals)) > 0 {
		return append(removals, notRemoved(others)...)
	}
	return append(removals, a.removeEach(ctx, Delete, others, a.deleteTarget)...)
}

// Release leaves every target running without the hub's marks, so that another owner can
// take it over. It does not change the pods. It is called again until all are done.
func (a *Applier) Release(ctx context.Context, targets []Target) []Removal {
	return a.removeEach(ctx, Release, targets, a.releaseTarget)
}

// removeEach removes one target after the other, until a failure ends the stage.
func (a *Applier) removeEach(ctx context.Context, action Action, targets []Target, remove func(context.Context, Target) (wrote, done bool, err error)) []Removal {
	removals := notRemoved(targets)
	for i, target := range targets {
		start := a.now()
		wrote, done, err := remove(ctx, target)
		removals[i].Done = done && err == nil
		removals[i].Failure = failure.Of(err, string(action), target.Key.String())
		a.logRemoval(ctx, action, target, wrote, removals[i].Failure, a.now().Sub(start))
		if aborts(removals[i].Failure) {
			break
		}
	}
	return removals
}

func notRemoved(targets []Target) []Removal {
	removals := make([]Removal, len(targets))
	for i := range targets {
		removals[i].Target = targets[i]
	}
	return removals
}

// deleteTarget deletes a target that the API server is not deleting yet, and reports whether
// it is gone.
func (a *Applier) deleteTarget(ctx context.Context, target Target) (wrote, done bool, err error) {
	if target.Deleting {
		return false, false, nil
	}
	if wrote, err = a.delete(ctx, target, foreground); err != nil {
		return wrote, false, err
	}
	done, err = a.gone(ctx, target)
	return wrote, done, err
}

// releaseTarget removes the hub's marks from a target. It reads the target first, because
// the inventory still lists a target that was released before.
func (a *Applier) releaseTarget(ctx context.Context, target Target) (wrote, done bool, err error) {
	found, err := a.get(ctx, target.Key)
	if err != nil || found == nil || found.GetUID() != target.UID {
		return false, err == nil, err
	}
	body := releasePatch(found)
	if body == nil {
		return false, true, nil
	}
	_, err = a.patch(ctx, target.Key, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
	return true, true, client.IgnoreNotFound(err)
}

// releasePatch returns the patch that removes the hub's marks from this object, by UID, or
// nil if it has none. Labels that describe the application stay.
func releasePatch(object metav1.Object) []byte {
	labels, annotations := map[string]any{}, map[string]any{}
	for _, key := range []string{v1alpha1.LabelCacheCluster, v1alpha1.LabelCluster} {
		if _, has := object.GetLabels()[key]; has {
			labels[key] = nil
		}
	}
	if object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy {
		labels[v1alpha1.LabelManagedBy] = nil
	}
	for _, key := range []string{v1alpha1.AnnotationOwner, v1alpha1.AnnotationIntent} {
		if _, has := object.GetAnnotations()[key]; has {
			annotations[key] = nil
		}
	}
	if len(labels)+len(annotations) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "labels": labels, "annotations": annotations}})
	if err != nil {
		return nil
	}
	return body
}

// foreground deletes the dependents first, so that no pod outlives its StatefulSet.
const foreground = metav1.DeletePropagationForeground

// gone reports whether the API server does not hold a target. After a foreground deletion,
// the object exists until its dependents are deleted.
func (a *Applier) gone(ctx context.Context, target Target) (bool, error) {
	found, err := a.get(ctx, target.Key)
	if err != nil {
		return false, err
	}
	return found == nil || found.GetUID() != target.UID, nil
}

// delete deletes one object by UID, and reports whether the API server accepted it. An
// object that is absent, or has another UID, is no error.
func (a *Applier) delete(ctx context.Context, target Target, propagation metav1.DeletionPropagation) (deleted bool, err error) {
	// The report no longer needs an unconfirmed correction of this object.
	a.writes.takeUnconfirmed(target.Key, a.namespace)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(target.Key.Kind)
	object.SetNamespace(a.namespace)
	object.SetName(target.Key.Name)
	err = a.client.Delete(ctx, object, client.Preconditions{UID: &target.UID}, client.PropagationPolicy(propagation))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

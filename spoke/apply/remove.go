package apply

import (
	"cmp"
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Remove deletes every target and gives those that are still there or could not
// be asked about, StatefulSets first. It is called again until none is left.
//
// Services and budgets stay until the StatefulSets are gone, and with them their
// pods: clients find a pod for as long as it runs, and a drain that comes meanwhile
// still spares the others.
func (a *Applier) Remove(ctx context.Context, targets []Target) (left []Target, failures []*failure.Failure) {
	var first, then []Target
	for _, target := range targets {
		if target.Key.Kind == render.StatefulSetKind {
			first = append(first, target)
		} else {
			then = append(then, target)
		}
	}
	if left, failures = a.removeAll(ctx, first); len(left) > 0 {
		return append(left, then...), failures
	}
	return a.removeAll(ctx, then)
}

func (a *Applier) removeAll(ctx context.Context, targets []Target) (left []Target, failures []*failure.Failure) {
	for i, target := range targets {
		if target.Deleting {
			left = append(left, target)
			continue
		}
		gone, err := a.gone(ctx, target)
		switch {
		case err != nil:
			f := failure.Of(err, "delete", target.Key.String())
			failures = append(failures, f)
			left = append(left, target)
			if stops(f) {
				return append(left, targets[i+1:]...), failures
			}
		case !gone:
			left = append(left, target)
		}
	}
	return left, failures
}

// Release leaves every target running, without the marks by which it is known to be
// ours, so that whoever comes next can take it over. Its pods are not touched. It
// gives what could not be released, and is called again until nothing is left.
func (a *Applier) Release(ctx context.Context, targets []Target) (left []Target, failures []*failure.Failure) {
	for i, target := range targets {
		if err := a.release(ctx, target); err != nil {
			f := failure.Of(err, "release", target.Key.String())
			failures = append(failures, f)
			left = append(left, target)
			if stops(f) {
				return append(left, targets[i+1:]...), failures
			}
		}
	}
	return left, failures
}

func (a *Applier) release(ctx context.Context, target Target) error {
	// The API server is asked: a child that was released before is in the inventory
	// still.
	found, err := a.lookUp(ctx, target.Key)
	if err != nil || found == nil || found.GetUID() != target.UID {
		return err
	}
	patch := unmark(found)
	if patch == nil {
		return nil
	}
	err = a.Client.Patch(ctx, found, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	return client.IgnoreNotFound(err)
}

// unmark is the patch that takes our marks off this very object, or nil if it has
// none. Labels that describe the application stay.
func unmark(object metav1.Object) []byte {
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

// gone deletes one target and says whether the API server holds it no more. A
// foreground deletion leaves the object until its dependents are gone.
func (a *Applier) gone(ctx context.Context, target Target) (bool, error) {
	if err := a.remove(ctx, target); err != nil {
		return false, err
	}
	found, err := a.lookUp(ctx, target.Key)
	if err != nil {
		return false, err
	}
	return found == nil || found.GetUID() != target.UID, nil
}

// remove deletes one object by UID; what is gone already, or is another object
// of the same name by now, is no error. Foreground if nothing else is said, so that
// a StatefulSet that is gone has no pods left.
func (a *Applier) remove(ctx context.Context, target Target) error {
	// What was repaired of it is of no interest any more.
	a.Writes.Tried(target.Key, a.Namespace)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(target.Key.Kind)
	u.SetNamespace(a.Namespace)
	u.SetName(target.Key.Name)
	policy := client.PropagationPolicy(cmp.Or(target.Propagation, metav1.DeletePropagationForeground))
	err := a.Client.Delete(ctx, u, client.Preconditions{UID: &target.UID}, policy)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

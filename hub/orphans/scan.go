package orphans

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// scan finds the orphans of a member and writes the condition.
func (f *Finder) scan(ctx context.Context, name string, cl cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	candidates, err := f.candidates(ctx, name, cl)
	if err != nil {
		return err
	}
	var orphans []child
	if len(candidates) > 0 {
		// From now on, a child that is deleted may change the result.
		f.setFound(name, true)
		if orphans, err = f.checkLive(ctx, name, cl, candidates); err != nil {
			return err
		}
	}
	if err := f.writeCondition(ctx, name, orphans); err != nil {
		return err
	}
	if len(candidates) == 0 {
		f.setFound(name, false)
	}
	return nil
}

// candidates returns the orphans according to the caches of member and hub.
func (f *Finder) candidates(ctx context.Context, name string, cl cluster.Cluster) ([]child, error) {
	var children []child
	for _, object := range f.options.Kinds {
		list, kind, err := newList(cl, object)
		if err != nil {
			return nil, err
		}
		if err := cl.GetCache().List(ctx, list, client.HasLabels{v1alpha1.LabelCacheCluster}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s in %s: %w", kind, name, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				children = append(children, newChild(kind, o))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var caches v1alpha1.MemberCacheList
	// The MemberCaches are only read.
	if err := f.options.Hub.GetCache().List(ctx, &caches, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MemberCaches: %w", err)
	}
	return orphansOf(children, ownersOf(caches.Items, name)), nil
}

func newList(cl cluster.Cluster, object client.Object) (client.ObjectList, string, error) {
	gvk, err := cl.GetClient().GroupVersionKindFor(object)
	if err != nil {
		return nil, "", err
	}
	created, err := cl.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, "", err
	}
	list, ok := created.(client.ObjectList)
	if !ok {
		return nil, "", fmt.Errorf("%sList is not an ObjectList", gvk.Kind)
	}
	return list, gvk.Kind, nil
}

// checkLive returns the candidates that are orphans according to both API servers. Either
// cache may be stale.
func (f *Finder) checkLive(ctx context.Context, name string, cl cluster.Cluster, candidates []child) ([]child, error) {
	var live []child
	for i := range candidates {
		c := &candidates[i]
		for _, object := range f.options.Kinds {
			gvk, err := cl.GetClient().GroupVersionKindFor(object)
			if err != nil {
				return nil, err
			}
			if gvk.Kind != c.kind {
				continue
			}
			current := &metav1.PartialObjectMetadata{}
			current.SetGroupVersionKind(gvk)
			err = cl.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, current)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read %s in %s: %w", c, name, err)
			}
			if err == nil && current.Labels[v1alpha1.LabelCacheCluster] != "" {
				live = append(live, newChild(c.kind, current))
			}
		}
	}
	// After the children: a MemberCache exists before any of its children.
	var caches v1alpha1.MemberCacheList
	if err := f.options.Hub.GetAPIReader().List(ctx, &caches); err != nil {
		return nil, fmt.Errorf("list MemberCaches: %w", err)
	}
	return orphansOf(live, ownersOf(caches.Items, name)), nil
}

// writeCondition applies the condition Leftovers to the ClusterProfile if it changed.
func (f *Finder) writeCondition(ctx context.Context, name string, orphans []child) error {
	profile := &clusterinventory.ClusterProfile{}
	if err := f.options.Hub.GetCache().Get(ctx, client.ObjectKey{Namespace: f.options.InventoryNamespace, Name: name}, profile); err != nil {
		return client.IgnoreNotFound(err)
	}
	old := profile.Status.Conditions
	var desired []metav1.Condition
	if len(orphans) > 0 {
		c := metav1.Condition{Type: v1alpha1.ConditionLeftovers, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLeftoversFound, Message: message(name, orphans)}
		if conditions.Equal(old, c) {
			return nil
		}
		desired = append(desired, conditions.Transition(old, c, f.options.Clock.Now()))
	} else if conditions.Get(old, v1alpha1.ConditionLeftovers) == nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions.Encode(desired)}}}
	u.SetGroupVersionKind(clusterinventory.GroupVersion.WithKind("ClusterProfile"))
	u.SetNamespace(profile.Namespace)
	u.SetName(profile.Name)
	started := f.options.Clock.Now()
	err := f.options.Hub.GetClient().Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the status of ClusterProfile %s: %w", name, err)
	}
	log.FromContext(ctx).Info("Wrote object", "action", "update status", "kind", "ClusterProfile", "cause", fmt.Sprintf("%s without an owner", objectCount(len(orphans))),
		"duration", f.options.Clock.Now().Sub(started))
	return nil
}

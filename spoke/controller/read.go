package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// snapshot is all that was read at the beginning of a reconcile. The objects in live and
// pods belong to the member's cache and must not be changed.
type snapshot struct {
	now time.Time
	// arrived is when the event arrived that caused the reconcile.
	arrived time.Time
	cache   *v1alpha1.MemberCache
	state   *cacheState
	// inventory is the status's, or that of a report that was deferred.
	inventory []v1alpha1.InventoryEntry
	// connection of the member when the reconcile began, and engaged its engagement, nil
	// while the member is disconnected.
	connection memberqueue.Connection
	engaged    *memberqueue.Engagement
	live       apply.Live
	pods       []corev1.Pod
	// scalers are the ranges of the autoscalers of the StatefulSet.
	scalers []drift.Range
}

// read takes the snapshot: the MemberCache from the hub's cache, the children from the
// member's. It returns nil if the MemberCache does not exist or belongs to another member. It
// returns errStaleCache for a MemberCache that is being deleted, until the cache shows the
// last write to it.
func (m *member) read(ctx context.Context, key types.NamespacedName, state *cacheState) (*snapshot, error) {
	now := m.clock.Now()
	s := &snapshot{now: now, arrived: now, cache: &v1alpha1.MemberCache{}, state: state}
	if err := m.hub.GetCache().Get(ctx, key, s.cache); err != nil {
		return nil, err
	}
	if s.cache.Spec.Cluster != m.name {
		return nil, nil
	}
	state.identify(s.cache.UID)
	if s.cache.DeletionTimestamp != nil && m.hubWrites.IsStale(s.cache) {
		// A removal sends a dozen requests to the member, and publish would refuse to
		// report their result.
		return nil, errStaleCache
	}
	if !state.arrived.IsZero() {
		s.arrived = state.arrived
	}
	s.inventory = state.inventory(s.cache)
	var err error
	if s.connection, err = m.connection(ctx); err != nil {
		return nil, err
	}
	if s.engaged = s.connection.Engagement; s.engaged == nil {
		return s, nil
	}
	return s, m.readChildren(ctx, s)
}

func (m *member) readChildren(ctx context.Context, s *snapshot) (err error) {
	reader := s.engaged.Cluster.GetCache()
	if s.live, err = m.children(ctx, reader, s.cache, indexed(s.cache)...); err != nil {
		return fmt.Errorf("list children in %s: %w", m.name, err)
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, indexed(s.cache)...); err != nil {
		return fmt.Errorf("list pods in %s: %w", m.name, err)
	}
	// Anyone may use the labels. The name is given by the StatefulSet controller.
	s.pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isPodOf(s.cache.Spec.CacheCluster, pod.Name) })
	if s.scalers, err = autoscalerRanges(ctx, s.engaged, s.cache); err != nil {
		return fmt.Errorf("list autoscalers in %s: %w", m.name, err)
	}
	return nil
}

// isPodOf reports whether a name is that of a pod of a StatefulSet.
func isPodOf(set, name string) bool {
	number, ok := strings.CutPrefix(name, set+"-")
	_, err := strconv.ParseUint(number, 10, 31)
	return ok && err == nil
}

// labelled selects the objects with the label of a MemberCache's cache.
func labelled(mc *v1alpha1.MemberCache) []client.ListOption {
	return []client.ListOption{client.InNamespace(mc.Namespace), client.MatchingLabels{v1alpha1.LabelCacheCluster: mc.Spec.CacheCluster}}
}

// indexed selects the same objects in a member's cache. It uses an index, since a search
// through all labels grows with the number of caches. It makes no copy, which would be the
// greatest cost of a reconcile that changes nothing.
func indexed(mc *v1alpha1.MemberCache) []client.ListOption {
	return []client.ListOption{client.InNamespace(mc.Namespace), client.MatchingFields{memberqueue.CacheField: mc.Spec.CacheCluster}, client.UnsafeDisableDeepCopy}
}

// children returns the selected objects, each as it was read or as it was written since.
func (m *member) children(ctx context.Context, reader client.Reader, mc *v1alpha1.MemberCache, selected ...client.ListOption) (apply.Live, error) {
	live := apply.Live{}
	for _, kind := range children.Kinds {
		list, err := newList(kind)
		if err != nil {
			return nil, err
		}
		if err := reader.List(ctx, list, selected...); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err != nil {
				return err
			}
			key := apply.Key{Kind: kind, Name: object.GetName()}
			live[key] = m.writeCache.Refresh(key, mc.Namespace, object)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return live, nil
}

func newList(kind schema.GroupVersionKind) (client.ObjectList, error) {
	listKind := kind
	listKind.Kind += "List"
	object, err := memberScheme.New(listKind)
	if err != nil {
		return nil, err
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", listKind.Kind)
	}
	return list, nil
}

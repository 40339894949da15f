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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// snapshot is all that was read, at the front of a reconcile. What live and pods point to
// is the member's cache's: it must not be changed.
type snapshot struct {
	now     time.Time
	arrived time.Time
	cache   *v1alpha1.MemberCache
	// inventory is the status's, or that of a report which was put off.
	inventory []v1alpha1.InventoryEntry
	// engaged is nil while the member does not answer; away then says why.
	engaged *engagement
	away    *failure.Failure
	awayAt  *metav1.Time
	live    apply.Live
	pods    []corev1.Pod
	// scalers are the ranges of the autoscalers of the StatefulSet.
	scalers []drift.Range
}

// read takes the snapshot: the MemberCache from the hub's cache, the children
// from the member's. nil means that the MemberCache is gone. errBehind: one that is
// being deleted is not worked on until the cache shows the last write to it.
func (m *member) read(ctx context.Context, request mcreconcile.Request) (*snapshot, error) {
	now := m.Clock.Now()
	s := &snapshot{now: now, arrived: m.arrivals.take(request.NamespacedName, now), cache: &v1alpha1.MemberCache{}}
	if err := m.Hub.GetCache().Get(ctx, request.NamespacedName, s.cache); err != nil {
		return nil, err
	}
	if s.cache.Spec.Cluster != m.name {
		return nil, nil
	}
	if s.cache.DeletionTimestamp != nil && m.writes.Behind(s.cache) {
		// A removal asks the member a dozen times, and write would refuse to tell what came
		// of it.
		if s.arrived.Before(now) {
			m.arrivals.note(request.NamespacedName, s.arrived)
		}
		return nil, errBehind
	}
	s.inventory = m.memo.inventory(s.cache)
	s.engaged = m.connected()
	if s.engaged == nil {
		return s, m.readAway(ctx, s)
	}
	return s, m.readChildren(ctx, s)
}

// readAway finds out why a member does not answer.
func (m *member) readAway(ctx context.Context, s *snapshot) error {
	profile := &clusterinventory.ClusterProfile{}
	err := m.Hub.GetCache().Get(ctx, m.profileKey(m.name), profile)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		s.away = &failure.Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonUnknownMember,
			Message: fmt.Sprintf("spec.cluster: %q: the hub has no ClusterProfile of this name", m.name),
			Hint:    "join the member (again): reconcile-lab join " + m.name + " --kubeconfig FILE"}
		return nil
	}
	if c := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable); c != nil && c.Status == metav1.ConditionFalse {
		s.away = &failure.Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable, Message: c.Message, Hint: m.remedy(c.Reason)}
		if c.Reason == v1alpha1.ReasonCredentialsInvalid {
			s.away.Reason = v1alpha1.ReasonUnauthorized
		}
		s.awayAt = &c.LastTransitionTime
	}
	return nil
}

// remedy for a reason of the Reachable condition.
func (m *member) remedy(reason string) string {
	switch reason {
	case v1alpha1.ReasonCredentialsMissing, v1alpha1.ReasonCredentialsInvalid:
		return "join the member (again): reconcile-lab join " + m.name + " --kubeconfig FILE"
	case v1alpha1.ReasonSyncFailed:
		return "give the hub's account in the member the right that the message names: reconcile-lab join " + m.name + " --kubeconfig FILE sets all of them"
	default:
		return "check the member's API server and the network to it; work on it resumes by itself when it answers"
	}
}

func (m *member) readChildren(ctx context.Context, s *snapshot) (err error) {
	reader := s.engaged.cluster.GetCache()
	if s.live, err = m.children(ctx, reader, s.cache, indexed(s.cache)...); err != nil {
		return fmt.Errorf("list children in %s: %w", m.name, err)
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, indexed(s.cache)...); err != nil {
		return fmt.Errorf("list pods in %s: %w", m.name, err)
	}
	// Labels are anybody's to use; the name is the StatefulSet's.
	s.pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isPodOf(s.cache.Spec.CacheCluster, pod.Name) })
	if s.scalers, err = s.engaged.scalersOf(ctx, s.cache); err != nil {
		return fmt.Errorf("list autoscalers in %s: %w", m.name, err)
	}
	return nil
}

// isPodOf says that a name is that of a pod of a StatefulSet, with its number.
func isPodOf(set, name string) bool {
	number, ok := strings.CutPrefix(name, set+"-")
	_, err := strconv.ParseUint(number, 10, 31)
	return ok && err == nil
}

// carried selects what carries the label of a MemberCache's cache.
func carried(mc *v1alpha1.MemberCache) []client.ListOption {
	return []client.ListOption{client.InNamespace(mc.Namespace), client.MatchingLabels{v1alpha1.LabelCacheCluster: mc.Spec.CacheCluster}}
}

// indexed selects the same in a member's cache: by an index, since a search through all
// labels grows with the number of caches, and without a copy, which would cost more than
// all else of a look at what has not changed.
func indexed(mc *v1alpha1.MemberCache) []client.ListOption {
	return []client.ListOption{client.InNamespace(mc.Namespace), client.MatchingFields{carriedField: mc.Spec.CacheCluster}, client.UnsafeDisableDeepCopy}
}

// children are what the reader shows of what is selected, or what was written since.
func (m *member) children(ctx context.Context, reader client.Reader, mc *v1alpha1.MemberCache, selected ...client.ListOption) (apply.Live, error) {
	live := apply.Live{}
	for _, kind := range render.Kinds {
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
			live[key] = m.recent.Refresh(key, mc.Namespace, object)
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
		return nil, fmt.Errorf("%s is no list", listKind.Kind)
	}
	return list, nil
}

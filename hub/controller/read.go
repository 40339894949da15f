package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// snapshot holds everything that a reconcile read from the hub.
type snapshot struct {
	now          time.Time
	cacheCluster *v1alpha1.CacheCluster
	// members are the ClusterProfiles that placement may choose.
	members []placement.Member
	// reachable is the status of the condition Reachable of every ClusterProfile.
	reachable map[string]metav1.ConditionStatus
	// memberCaches carry the name of the CacheCluster in spec.cacheCluster. Some may
	// belong to an earlier CacheCluster of the same name.
	memberCaches []v1alpha1.MemberCache
}

// read returns a snapshot from the cache of the hub, or nil where the cache does not
// show the last write to the CacheCluster yet.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*snapshot, error) {
	s := &snapshot{now: r.clock.Now(), cacheCluster: &v1alpha1.CacheCluster{}}
	if err := r.client.Get(ctx, key, s.cacheCluster); err != nil {
		return nil, err
	}
	if r.states.isStale(s.cacheCluster) {
		// The event of that write is on its way and triggers the next reconcile.
		return nil, nil
	}
	if err := r.readMembers(ctx, r.client, s); err != nil {
		return nil, err
	}
	var list v1alpha1.MemberCacheList
	if err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{cacheClusterField: key.Name}); err != nil {
		return nil, fmt.Errorf("list MemberCaches of CacheCluster %s: %w", key, err)
	}
	s.memberCaches = list.Items
	return s, nil
}

// readMembers reads the ClusterProfiles into a snapshot.
func (r *Reconciler) readMembers(ctx context.Context, from client.Reader, s *snapshot) error {
	var profiles clusterinventory.ClusterProfileList
	// Nothing keeps a reference into the cache but to labels, which nothing changes.
	if err := from.List(ctx, &profiles, client.InNamespace(r.inventoryNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ClusterProfiles: %w", err)
	}
	s.reachable = make(map[string]metav1.ConditionStatus, len(profiles.Items))
	for i := range profiles.Items {
		p := &profiles.Items[i]
		s.reachable[p.Name] = metav1.ConditionUnknown
		if c := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReachable); c != nil {
			s.reachable[p.Name] = c.Status
		}
		if _, usable := placement.Usable(p.Name); usable && p.DeletionTimestamp == nil {
			s.members = append(s.members, placement.Member{Name: p.Name, Labels: p.Labels})
		}
	}
	return nil
}

// ownsMemberCaches reports whether there are MemberCaches of this CacheCluster.
func (s *snapshot) ownsMemberCaches() bool {
	return slices.ContainsFunc(s.memberCaches, func(mc v1alpha1.MemberCache) bool { return metav1.IsControlledBy(&mc, s.cacheCluster) })
}

// memberCache returns the MemberCache of a name, or nil.
func (s *snapshot) memberCache(name string) *v1alpha1.MemberCache {
	for i := range s.memberCaches {
		if s.memberCaches[i].Name == name {
			return &s.memberCaches[i]
		}
	}
	return nil
}

// unreachable reports whether the hub knows that a member is unreachable. A member
// that was not probed yet is not known to be.
func (s *snapshot) unreachable(member string) bool {
	status, known := s.reachable[member]
	return !known || status == metav1.ConditionFalse
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
)

// errBehind: the cache shows an older CacheCluster or inventory than the API server
// has. Its events are on the way and ask again.
var errBehind = errors.New("the hub's cache is behind")

// confirm asks the API server itself before anything is changed or taken away. Each
// kind has a cache of its own, so one may lag behind the others: the MemberCache of
// a member that joined a moment ago looks like one too many to a cache that does not
// show the member yet. Creating needs no such question, since the next look corrects it.
func (r *Reconciler) confirm(ctx context.Context, s *snapshot, p *plan) error {
	if len(p.update)+len(p.remove)+len(p.abandon) == 0 || p.verdict.Deleting && len(p.abandon) == 0 {
		return nil
	}
	now := &v1alpha1.CacheCluster{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.cache), now)
	switch {
	case apierrors.IsNotFound(err):
		return errBehind
	case err != nil:
		return fmt.Errorf("look at the CacheCluster again: %w", err)
	case now.UID != s.cache.UID || now.Generation != s.cache.Generation || !now.DeletionTimestamp.Equal(s.cache.DeletionTimestamp) ||
		now.Annotations[v1alpha1.AnnotationAbandon] != s.cache.Annotations[v1alpha1.AnnotationAbandon]:
		return errBehind
	}
	again := snapshot{now: s.now, cache: s.cache, caches: s.caches}
	if err := r.readMembers(ctx, r.Live, &again); err != nil {
		return err
	}
	if fresh := decide(&again); !same(fresh.update, p.update) || !same(fresh.remove, p.remove) || !same(fresh.abandon, p.abandon) {
		return errBehind
	}
	return nil
}

// same says whether two plans mean the same MemberCaches, in the same way.
func same(a, b []*v1alpha1.MemberCache) bool {
	specs := func(of []*v1alpha1.MemberCache) map[string]string {
		found := map[string]string{}
		for _, mc := range of {
			found[mc.Name] = string(mc.UID) + mc.Spec.Revision
		}
		return found
	}
	return maps.Equal(specs(a), specs(b))
}

// readMembers reads the inventory into a snapshot.
func (r *Reconciler) readMembers(ctx context.Context, from client.Reader, s *snapshot) error {
	var profiles clusterinventory.ClusterProfileList
	if err := from.List(ctx, &profiles, client.InNamespace(r.InventoryNamespace)); err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	s.reachable = make(map[string]metav1.ConditionStatus, len(profiles.Items))
	for i := range profiles.Items {
		p := &profiles.Items[i]
		s.reachable[p.Name] = metav1.ConditionUnknown
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReachable); c != nil {
			s.reachable[p.Name] = c.Status
		}
		if _, usable := placement.Usable(p.Name); usable && p.DeletionTimestamp == nil {
			s.members = append(s.members, placement.Member{Name: p.Name, Labels: p.Labels})
		}
	}
	return nil
}

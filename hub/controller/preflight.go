package controller

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// preflight decides again on CacheCluster and members as the API server has them, and
// returns errStaleCache unless the plan stays the same. Only plans that update or
// delete are verified. Each kind has a cache of its own: where the cache shows a
// MemberCache but not yet the member that joined, the MemberCache would be deleted.
// A create needs no check, because the next reconcile corrects it.
func (r *Reconciler) preflight(ctx context.Context, s *snapshot, p *plan) error {
	if len(p.update)+len(p.remove)+len(p.abandon) == 0 || p.summary.Deleting && len(p.abandon) == 0 {
		return nil
	}
	live := &v1alpha1.CacheCluster{}
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(s.cacheCluster), live)
	switch {
	case apierrors.IsNotFound(err):
		return errStaleCache
	case err != nil:
		return fmt.Errorf("read CacheCluster %s/%s: %w", s.cacheCluster.Namespace, s.cacheCluster.Name, err)
	case live.UID != s.cacheCluster.UID || live.Generation != s.cacheCluster.Generation ||
		!live.DeletionTimestamp.Equal(s.cacheCluster.DeletionTimestamp) ||
		live.Annotations[v1alpha1.AnnotationAbandon] != s.cacheCluster.Annotations[v1alpha1.AnnotationAbandon]:
		return errStaleCache
	}
	fresh := snapshot{now: s.now, cacheCluster: s.cacheCluster, memberCaches: s.memberCaches}
	if err := r.readMembers(ctx, r.apiReader, &fresh); err != nil {
		return err
	}
	again := decide(&fresh)
	if !samePlan(again.update, p.update) || !samePlan(again.remove, p.remove) || !samePlan(again.abandon, p.abandon) {
		return errStaleCache
	}
	return nil
}

// samePlan reports whether two lists hold the same MemberCaches at the same revisions.
func samePlan(a, b []*v1alpha1.MemberCache) bool {
	revisions := func(list []*v1alpha1.MemberCache) map[string]string {
		byName := map[string]string{}
		for _, mc := range list {
			byName[mc.Name] = string(mc.UID) + mc.Spec.Revision
		}
		return byName
	}
	return maps.Equal(revisions(a), revisions(b))
}

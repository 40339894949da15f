package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// hubDeadline bounds a write to the hub, which the manager cannot do without.
const hubDeadline = 10 * time.Second

// write saves the status if it changed, and lets a MemberCache go once its
// children are gone. Both fail on a stale cache instead of overwriting.
func (m *member) write(ctx context.Context, s *snapshot, r *result, attempts int) error {
	ctx, cancel := context.WithTimeout(ctx, hubDeadline)
	defer cancel()
	hub := m.Hub.GetClient()

	if s.cache.DeletionTimestamp != nil && r.failure == nil && len(r.left) == 0 {
		released := s.cache.DeepCopy()
		if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
			return nil
		}
		return hub.Patch(ctx, released, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{}))
	}
	updated := s.cache.DeepCopy()
	updated.Status = summarize(s, r, attempts)
	if equality.Semantic.DeepEqual(updated.Status, s.cache.Status) {
		return nil
	}
	return hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{}))
}

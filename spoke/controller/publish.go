package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// hubDeadline bounds a write to the hub, without which no reconcile can end.
const hubDeadline = 10 * time.Second

// publish writes the status to the hub, or releases the finalizer once all children are
// deleted, and returns when the next reconcile is due.
func (m *member) publish(ctx context.Context, s *snapshot, status v1alpha1.MemberCacheStatus, r *result) (ctrl.Result, error) {
	err := m.write(ctx, s, status, r)
	switch {
	case errors.Is(err, errStaleCache) || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The hub's cache is stale; its next event is on the way.
		s.state.keepUnreported(r.report.Changes)
		return ctrl.Result{RequeueAfter: jittered(memberqueue.FirstRetry)}, nil
	case err != nil:
		s.state.keepUnreported(r.report.Changes)
		return ctrl.Result{}, fmt.Errorf("write status of MemberCache %s: %w", client.ObjectKeyFromObject(s.cache), err)
	}
	lags := !r.unreachable && m.writeCache.Pending(s.cache.Namespace, r.report.Inventory)
	r.requeueAfter(s.state.lag.update(lags, m.clock.Now()))
	return ctrl.Result{RequeueAfter: r.requeue}, nil
}

// write fails on a stale MemberCache instead of overwriting the newer one.
func (m *member) write(ctx context.Context, s *snapshot, status v1alpha1.MemberCacheStatus, r *result) error {
	if m.hubWrites.IsStale(s.cache) {
		return errStaleCache
	}
	ctx, cancel := context.WithTimeout(ctx, hubDeadline)
	defer cancel()
	if s.cache.DeletionTimestamp != nil && r.failure == nil && len(r.remaining) == 0 {
		return m.releaseFinalizer(ctx, s.cache)
	}
	if equality.Semantic.DeepEqual(status, s.cache.Status) {
		return nil
	}
	if wait := m.throttle(s, &status); wait > 0 {
		s.state.deferredInventory = status.Inventory
		m.states.deferReport(s.state, m.clock.Now().Add(wait))
		r.requeueAfter(wait)
		logDeferred(ctx, wait)
		return nil
	}
	updated := s.cache.DeepCopy()
	updated.Status = status
	if err := m.hub.GetClient().Status().Patch(ctx, updated, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	m.hubWrites.Record(updated)
	s.state.deferredInventory = nil
	countReported(m.name, s.cache.Status.OpenDrifts, updated.Status.OpenDrifts)
	m.events.Record(s.now, reference(updated), transitions(&s.cache.Status, &updated.Status)...)
	logTransition(ctx, &s.cache.Status, &updated.Status)
	return nil
}

func (m *member) releaseFinalizer(ctx context.Context, mc *v1alpha1.MemberCache) error {
	updated := mc.DeepCopy()
	if !controllerutil.RemoveFinalizer(updated, v1alpha1.Finalizer) {
		return nil
	}
	err := m.hub.GetClient().Patch(ctx, updated, client.MergeFromWithOptions(mc, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		logReleased(ctx)
		if len(updated.Finalizers) > 0 {
			m.hubWrites.Record(updated)
		}
	}
	return err
}

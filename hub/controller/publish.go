package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// publish saves the status if it changed. It returns how long to wait before the
// next reconcile: where the status was throttled, until its pause is over.
func (r *Reconciler) publish(ctx context.Context, s *snapshot, p *plan) (wait time.Duration, err error) {
	old := &s.cacheCluster.Status
	updated := s.cacheCluster.DeepCopy()
	updated.Status = status.Summarize(old, p.summary)
	if equality.Semantic.DeepEqual(&updated.Status, old) {
		return 0, nil
	}
	if wait := r.states.statusThrottle(s.cacheCluster, &updated.Status, s.now); wait > 0 {
		return wait, nil
	}
	started := r.clock.Now()
	err = r.client.Status().Patch(ctx, updated, client.MergeFromWithOptions(s.cacheCluster, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write status of CacheCluster %s/%s: %w", updated.Namespace, updated.Name, err)
	}
	if err != nil {
		return 0, nil
	}
	r.states.wroteStatus(updated, s.now)
	r.logStatus(ctx, old, updated, started)
	r.events.Record(s.now, objectReference(updated), readyTransition(old, &updated.Status)...)
	return 0, nil
}

// logStatus logs a status write. A write that changes Ready is logged at V(0), every
// other one at V(2).
func (r *Reconciler) logStatus(ctx context.Context, old *v1alpha1.CacheClusterStatus, cc *v1alpha1.CacheCluster, started time.Time) {
	before, after := conditions.Get(old.Conditions, v1alpha1.ConditionReady), conditions.Get(cc.Status.Conditions, v1alpha1.ConditionReady)
	level, cause := 2, "the members' reports changed"
	if after != nil && (before == nil || before.Status != after.Status || before.Reason != after.Reason) {
		level, cause = 0, fmt.Sprintf("Ready is %s (%s)", after.Status, after.Reason)
	}
	r.logWrite(ctx, level, "update status", cc, cause, started)
}

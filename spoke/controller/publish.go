package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// hubDeadline bounds a write to the hub, which the manager cannot do without.
const hubDeadline = 10 * time.Second

// countsPause is the least time between two reports that differ in counts only: a
// StatefulSet of a hundred pods that starts is not a hundred writes to the hub.
const countsPause = time.Second

// The first report about a generation waits for pods to be ready, see early: firstPause,
// and eachPause more for every other cache that the member begins with, up to
// longestPause. Where many begin, all their pods take longer.
const (
	firstPause   = 2 * time.Second
	eachPause    = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// errBehind: the hub's cache does not show our own last write yet.
var errBehind = errors.New("the hub's cache is behind")

// write saves the status if it changed, and lets a MemberCache go once its
// children are gone. Both fail on an old MemberCache instead of overwriting. later
// is when a report that was put off is due, or 0.
func (m *member) write(ctx context.Context, s *snapshot, r *result) (later time.Duration, err error) {
	if m.writes.Behind(s.cache) {
		return 0, errBehind
	}
	ctx, cancel := context.WithTimeout(ctx, hubDeadline)
	defer cancel()
	hub := m.Hub.GetClient()
	updated := s.cache.DeepCopy()

	if s.cache.DeletionTimestamp != nil && r.failure == nil && len(r.left) == 0 {
		if !controllerutil.RemoveFinalizer(updated, v1alpha1.Finalizer) {
			return 0, nil
		}
		err := hub.Patch(ctx, updated, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{}))
		if err == nil && len(updated.Finalizers) > 0 {
			m.writes.Wrote(updated)
		}
		return 0, err
	}
	updated.Status = summarize(s, r)
	if equality.Semantic.DeepEqual(updated.Status, s.cache.Status) {
		return 0, nil
	}
	key := client.ObjectKeyFromObject(s.cache)
	later = max(hasty(&s.cache.Status, &updated.Status, s.now),
		early(s, &updated.Status, m.memo.since(key), m.memo.begun(s.now.Add(-longestPause))))
	if later > 0 {
		m.memo.putOff(key, updated.Status.Inventory)
		return later, nil
	}
	if err := hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, err
	}
	m.writes.Wrote(updated)
	m.memo.putOff(key, nil)
	countReported(m.name, s.cache.Status.OpenDrifts, updated.Status.OpenDrifts)
	m.Events.Record(s.now, reference(updated), transitions(&s.cache.Status, &updated.Status)...)
	return 0, nil
}

// early says how long the first report about a generation should wait that only
// says that pods are on their way: where they get ready in that time, one write says it
// all. since is when the generation was seen first; begun is the number of this member's
// caches, this one among them, that got a new generation lately.
func early(s *snapshot, next *v1alpha1.MemberCacheStatus, since time.Time, begun int) time.Duration {
	old := &s.cache.Status
	waited := s.now.Sub(since)
	if since.IsZero() || waited < 0 || next.State != v1alpha1.MemberProgressing || next.Class != "" ||
		tells(s.cache) ||
		!equality.Semantic.DeepEqual(old.LastDrift, next.LastDrift) || !equality.Semantic.DeepEqual(old.OpenDrifts, next.OpenDrifts) {
		return 0
	}
	pause := min(firstPause+time.Duration(max(0, begun-1))*eachPause, longestPause)
	return max(0, pause-waited)
}

// hasty says how long a report should wait that differs from the last one in
// counts only and comes right after it.
func hasty(old, next *v1alpha1.MemberCacheStatus, now time.Time) time.Duration {
	if old.ObservedAt == nil {
		return 0
	}
	same := next.DeepCopy()
	same.Replicas, same.ReadyReplicas, same.ObservedAt = old.Replicas, old.ReadyReplicas, old.ObservedAt
	if !equality.Semantic.DeepEqual(old, same) {
		return 0
	}
	wait := countsPause - now.Sub(old.ObservedAt.Time)
	if wait > countsPause {
		// The clock was set back since.
		return 0
	}
	return max(0, wait)
}

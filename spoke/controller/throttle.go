package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/throttle"
)

// countsInterval is the least time between two reports that differ in counts only: the
// start of a StatefulSet of a hundred pods must not be a hundred writes to the hub.
const countsInterval = time.Second

// The first report of a generation is deferred until its pods are ready, for at most
// firstReportDelay. Each other MemberCache of the member that starts at the same time adds
// delayPerStart, up to longestReportDelay: the pods of all take longer.
const (
	firstReportDelay   = 2 * time.Second
	delayPerStart      = 100 * time.Millisecond
	longestReportDelay = 10 * time.Second
)

var (
	countsPause      = throttle.Pause{Base: countsInterval}
	firstReportPause = throttle.Pause{Base: firstReportDelay, PerObject: delayPerStart, Max: longestReportDelay}
)

// throttle returns how long a changed status is deferred, 0 if it is written now.
func (m *member) throttle(s *snapshot, next *v1alpha1.MemberCacheStatus) time.Duration {
	wait := throttleCounts(&s.cache.Status, next, s.now)
	if since := m.states.startedAt(s.state); !since.IsZero() {
		wait = max(wait, deferFirstReport(s, next, since, m.states.startedAfter(s.now.Add(-longestReportDelay))))
	}
	return wait
}

// deferFirstReport returns how long the first report of a generation is deferred while it
// reports only that pods start: if they are ready in time, one write is enough. since is
// when the generation was first seen. started is the number of this member's MemberCaches,
// this one included, that started a generation lately.
func deferFirstReport(s *snapshot, next *v1alpha1.MemberCacheStatus, since time.Time, started int) time.Duration {
	old := &s.cache.Status
	if next.State != v1alpha1.MemberProgressing || next.Class != "" || isReported(s.cache) ||
		!equality.Semantic.DeepEqual(old.LastDrift, next.LastDrift) || !equality.Semantic.DeepEqual(old.OpenDrifts, next.OpenDrifts) {
		return 0
	}
	return firstReportPause.Remaining(since, started, s.now)
}

// throttleCounts returns how long a report is deferred that differs from the last one in
// counts only.
func throttleCounts(old, next *v1alpha1.MemberCacheStatus, now time.Time) time.Duration {
	if old.ObservedAt == nil {
		return 0
	}
	same := next.DeepCopy()
	same.Replicas, same.ReadyReplicas, same.ObservedAt = old.Replicas, old.ReadyReplicas, old.ObservedAt
	if !equality.Semantic.DeepEqual(old, same) {
		return 0
	}
	return countsPause.Remaining(old.ObservedAt.Time, 1, now)
}

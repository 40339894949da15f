package controller

import (
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/throttle"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// settleTime is how long the StatefulSet controller may take to settle after a correction
// before the status reports a roll-out. It needs a moment to find that all is as before,
// and each report of that would be two writes to the hub.
const settleTime = 3 * time.Second

var settlePause = throttle.Pause{Base: settleTime}

// settling reports whether the MemberCache was reported ready for this generation, still
// has every desired pod ready, and only its StatefulSet rolls out.
func settling(mc *v1alpha1.MemberCache, o *observe.Observation) bool {
	old := &mc.Status
	return o != nil && old.State == v1alpha1.MemberReady && old.ObservedGeneration == mc.Generation &&
		o.State == v1alpha1.MemberProgressing && o.Outcome.Reason == v1alpha1.ReasonRollingOut && o.ReadyReplicas >= old.ReadyReplicas
}

// longDrifted reports whether corrected drift had lasted for longer than settleTime, for
// example while the watch was broken. Its pods may have been replaced since, and are
// replaced again now.
func longDrifted(changes []apply.Change, now time.Time) bool {
	for i := range changes {
		if c := &changes[i]; c.Drifted() {
			if at := describeChange(c).ChangedAt; at != nil && now.Sub(at.Time) > settleTime {
				return true
			}
		}
	}
	return false
}

// settle replaces the observation by the last reported one while the StatefulSet settles.
func (r *result) settle(s *snapshot) {
	since := &s.state.unsettledSince
	switch {
	case !settling(s.cache, r.observation) || longDrifted(r.report.Changes, s.now):
		*since = time.Time{}
		return
	case since.IsZero():
		*since = s.now
	}
	remaining := settlePause.Remaining(*since, 1, s.now)
	if remaining == 0 {
		return
	}
	old := &s.cache.Status
	r.observation = &observe.Observation{State: old.State, Replicas: old.Replicas, ReadyReplicas: old.ReadyReplicas,
		Outcome: v1alpha1.Outcome{Reason: old.Reason, Message: old.Message, Hint: old.Hint}}
	r.requeueAfter(remaining)
}

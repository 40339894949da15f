package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// ripplePause is how long a cache that was ready may show the ripples of a repair
// before the status calls them a roll-out: the StatefulSet controller takes a
// moment to see that all is as before, and each word of that would be two writes
// to the hub.
const ripplePause = 3 * time.Second

// ripple says whether an observation is of a cache that was reported ready for this
// generation and still has every wanted pod ready, only that its StatefulSet moves.
func ripple(mc *v1alpha1.MemberCache, o *observe.Observation) bool {
	old := &mc.Status
	return o != nil && old.State == v1alpha1.MemberReady && old.ObservedGeneration == mc.Generation &&
		o.State == v1alpha1.MemberProgressing && o.Outcome.Reason == v1alpha1.ReasonRollingOut && o.ReadyReplicas >= old.ReadyReplicas
}

// lasted says that drift which was put right had been there for longer than a ripple, as
// where the watch was broken: its pods may have been replaced since, and are again now.
func lasted(changes []apply.Change, now time.Time) bool {
	for i := range changes {
		if c := &changes[i]; c.Drifted() {
			if at := describeChange(c).ChangedAt; at != nil && now.Sub(at.Time) > ripplePause {
				return true
			}
		}
	}
	return false
}

// calm gives an observation as it was reported last while it only ripples, and how
// long that may go on; otherwise the observation itself and 0.
func (m *member) calm(s *snapshot, key types.NamespacedName, o *observe.Observation, changes []apply.Change) (*observe.Observation, time.Duration) {
	since := m.memo.rippling(key, ripple(s.cache, o) && !lasted(changes, s.now), s.now)
	waited := s.now.Sub(since)
	if since.IsZero() || waited < 0 || waited >= ripplePause {
		return o, 0
	}
	old := &s.cache.Status
	return &observe.Observation{State: old.State, Replicas: old.Replicas, ReadyReplicas: old.ReadyReplicas,
		Outcome: v1alpha1.Outcome{Reason: old.Reason, Message: old.Message, Hint: old.Hint}}, ripplePause - waited
}

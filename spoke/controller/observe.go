package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// observe reads the state of the StatefulSet after the plan was executed.
func (m *member) observe(ctx context.Context, s *snapshot, r result) result {
	if r.unknown {
		return r
	}
	key := apply.Key{Kind: children.StatefulSetKind, Name: s.cache.Spec.CacheCluster}
	live := m.writeCache.Latest(key, s.cache.Namespace, s.live[key])
	set, _ := live.(*appsv1.StatefulSet)
	owner := s.owner()
	if set != nil && !owner.Owns(set) {
		// The state of another owner's StatefulSet is not the state of this cache.
		set = nil
	}
	seen := observe.Observe(set, s.pods)
	r.requeueAfter(m.diagnose(ctx, s, set, &seen))
	r.observation = notRecreated(&seen, &r.report)
	return r
}

// notRecreated returns the observation, unless the StatefulSet was deleted and the policy
// leaves it so: then no pods will start.
func notRecreated(o *observe.Observation, report *apply.Report) *observe.Observation {
	deleted := func(o apply.RemainingDrift) bool {
		return o.Deleted && !o.Refused && o.Key.Kind == children.StatefulSetKind
	}
	i := slices.IndexFunc(report.Remaining, deleted)
	if i < 0 {
		return o
	}
	return &observe.Observation{State: v1alpha1.MemberBlocked, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonDriftReported,
		Message: report.Remaining[i].Key.String() + " was deleted; it is not recreated because spec.drift.policy is Report",
		Hint:    "to recreate it, set spec.drift.policy to Correct in the CacheCluster: kubectl edit cc"}}
}

package controller

import (
	"context"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// delete removes the children of a MemberCache that is being deleted.
func (m *member) delete(ctx context.Context, s *snapshot) result {
	// A StatefulSet that is being recreated must exist before its pods can be removed:
	// pods without a StatefulSet would stay for ever.
	owner := s.owner()
	if target, recreating := owner.Recreating(); recreating {
		r := m.converge(ctx, s)
		if r.failure == nil || r.failure.Class == v1alpha1.ClassTransient || r.failure.Class == v1alpha1.ClassUnreachable {
			r.remaining = []apply.Target{target}
			return r
		}
	}
	return m.remove(ctx, s)
}

// remove deletes or orphans the children that the member's API server shows. The cache may
// not show yet what was applied just before the deletion. Once the MemberCache is deleted,
// no reconcile would find such a child.
func (m *member) remove(ctx context.Context, s *snapshot) result {
	r := result{report: apply.Report{Inventory: s.inventory}}
	if err := m.verify(ctx, s.cache); err != nil {
		return unverified(err)
	}
	live, err := m.children(ctx, s.engaged.Cluster.GetAPIReader(), s.cache, labelled(s.cache)...)
	if err != nil {
		r.failure = failure.Of(err, "list", "the children")
		return r
	}
	applier := m.applier(s)
	end := applier.Remove
	if s.cache.Spec.Policies.Orphan() {
		end = applier.Release
	}
	removals := end(ctx, apply.Targets(live, s.owner()))
	r.remaining, r.report.Failures = apply.RemainingTargets(removals), apply.RemovalFailures(removals)
	r.failure = r.report.PrimaryFailure()
	return r
}

package controller

import (
	"context"

	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// apply executes the plan in the member.
func (m *member) apply(ctx context.Context, s *snapshot, d decision) result {
	switch {
	case d.unverified != nil:
		return unverified(d.unverified)
	case d.failure != nil:
		return result{failure: d.failure, report: apply.Report{Inventory: s.inventory}}
	}
	before := s.state.conflicts.tripped()
	report := d.applier.Apply(ctx, d.plan)
	r := result{report: report, failure: report.PrimaryFailure()}
	r.conflicts = s.state.conflicts.update(&report, m.clock.Now())
	logConflicts(ctx, before, s.state.conflicts.tripped())
	if r.failure == nil {
		r.failure = r.conflicts.failure()
	}
	return r
}

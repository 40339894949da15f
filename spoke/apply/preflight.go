package apply

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// confirm looks up whatever the cache calls absent: it may be behind, or not show
// a child because somebody removed its label. Only then is anything written, and
// never a child that could not be looked up: an object of somebody else may be
// there. And it looks up what the cache says is in the way or being deleted, before that
// is told: it may be gone, and the cache may show that only much later.
func (a *Applier) confirm(ctx context.Context, plan *Plan, report *Report) (stop bool) {
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.Action != Create && step.Action != TakeOver && !step.doubtful() {
			continue
		}
		if failed := a.lookAt(ctx, step); failed != nil {
			return report.fail(failed)
		}
	}
	return false
}

// doubtful says that an object which the cache shows keeps a step from being carried out.
func (s *Step) doubtful() bool {
	return s.Action == Refuse || s.Action == Wait && s.Live != nil && s.Live.GetDeletionTimestamp() != nil
}

// lookAt decides anew about a step that creates or takes over, or is kept from being
// carried out, by what stands there. Where that cannot be found out the step waits; where
// the member does not answer, the failure is returned.
func (a *Applier) lookAt(ctx context.Context, step *Step) *failure.Failure {
	found, err := a.lookUp(ctx, step.Key())
	switch {
	case err != nil:
		failed := failure.Of(err, "read", step.Key().String())
		if stops(failed) {
			return failed
		}
		step.Action, step.Failure = Wait, failed
	case found == nil && (step.Action == TakeOver || step.doubtful()):
		a.Writes.absent(step.Key(), a.Namespace)
		if *step = decide(step.wish, nil, a.Owner, a.Writes); step.Deleted && a.Owner.DriftPolicy.Report {
			step.Action = ReportOnly
		}
	case found == nil && step.Deleted && a.Owner.DriftPolicy.Report:
		a.Writes.absent(step.Key(), a.Namespace)
		step.Action = ReportOnly
	case found != nil:
		*step = decide(step.wish, found, a.Owner, a.Writes)
		if step.Action == TakeOver && a.Owner.Policies.Takeover == v1alpha1.TakeoverIfMatching {
			return a.match(ctx, step)
		}
		if step.Action == None || step.Action == ReportOnly {
			a.Writes.Put(step.Key(), a.Namespace, found)
		}
	}
	return nil
}

// begun says that some child of this owner is or was in the member. Until then a
// member takes all of the children or none.
func (p *Plan) begun(owner Owner) bool {
	for i := range p.Steps {
		switch p.Steps[i].Action {
		case None, Update, Correct, ReportOnly, Recreate:
			return true
		}
	}
	return len(owner.Inventory) > 0
}

// first is the step that is carried out before the others of a cache that the member
// does not hold yet, or -1.
func (p *Plan) first() int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return s.Key().Kind == render.StatefulSetKind })
}

// rehearse has the member check every child of a cache that it does not hold yet,
// without writing one: what it would refuse for the last child must not leave the
// first ones behind. The one that is carried out first need only be looked up. What is
// in the way is enough to say so.
func (a *Applier) rehearse(ctx context.Context, plan *Plan, first int, report *Report) {
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.doubtful() {
			// A cache may show what is gone, such as a child of the predecessor.
			if failed := a.lookAt(ctx, step); failed != nil {
				report.fail(failed)
				return
			}
		}
		if step.Failure != nil {
			report.fail(step.Failure)
		}
	}
	if len(report.Failures) > 0 {
		return
	}
	met := make([]*failure.Failure, len(plan.Steps))
	var all sync.WaitGroup
	for i := range plan.Steps {
		all.Go(func() { met[i] = a.try(ctx, &plan.Steps[i], i == first) })
	}
	all.Wait()
	for _, failed := range met {
		if failed != nil {
			report.fail(failed)
		}
	}
}

// try has the member check one child without writing it. What it answers tells
// whether anything stands there, so that only then, or if it is the first, it is looked
// up.
func (a *Applier) try(ctx context.Context, step *Step, first bool) *failure.Failure {
	var refused *failure.Failure
	if step.Action == Create && !first {
		answer, err := a.write(ctx, step, client.DryRunAll)
		if err == nil && (!step.unguarded || answer.GetResourceVersion() == "") {
			return nil
		}
		if refused = failure.Of(err, "apply", step.Key().String()); refused != nil && !apierrors.IsConflict(err) && !inTheWay(refused) {
			return refused
		}
	}
	if failed := a.lookAt(ctx, step); failed != nil {
		return failed
	}
	switch {
	case step.Failure != nil:
		return step.Failure
	case step.Action == Create && refused != nil && refused.Reason != v1alpha1.ReasonObjectOfAnother:
		// Nothing stands there: it is the intent itself that is refused.
		return refused
	case step.Action == TakeOver && a.Owner.Policies.Takeover == v1alpha1.TakeoverAlways:
		_, err := a.write(ctx, step, client.DryRunAll)
		return failure.Of(err, "take over", step.Key().String())
	}
	return nil
}

// inTheWay says that an object which stands there could be why a first apply was
// refused: its owner holds a field, or what came of joining it was not valid.
func inTheWay(f *failure.Failure) bool {
	switch f.Reason {
	case v1alpha1.ReasonObjectOfAnother, v1alpha1.ReasonImmutableField, v1alpha1.ReasonRejected:
		return true
	}
	return false
}

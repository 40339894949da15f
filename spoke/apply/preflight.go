package apply

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// Resolve checks a plan in the member with live reads and dry runs, and returns the plan to
// be executed. It writes no child; it may create the namespace, without which no dry run is
// possible. It returns an error if the member is unreachable or asks for a pause.
func (a *Applier) Resolve(ctx context.Context, plan Plan) (Plan, error) {
	steps := slices.Clone(plan.Steps)
	check := a.checkEach
	if plan.Initial {
		check = a.checkInitial
	}
	if err := check(ctx, &plan, steps); err != nil {
		return plan, err
	}
	for i := range steps {
		if steps[i].corrects() && a.deferred(&steps[i]) {
			steps[i].Action, steps[i].Deferred = ReportOnly, true
		}
	}
	resolved := plan
	resolved.Steps = steps
	resolved.Blocked = plan.Initial && slices.ContainsFunc(steps, func(s Step) bool { return s.Failure != nil })
	return resolved, nil
}

// checkEach replaces the steps that depend on a live read or a dry run, one after the other.
func (a *Applier) checkEach(ctx context.Context, plan *Plan, steps []Step) (err error) {
	for i := range steps {
		switch step := &steps[i]; {
		case step.Live == nil, step.Action == TakeOver, step.obstructed():
			steps[i], err = a.lookUp(ctx, &plan.Owner, step)
		case step.Action == Recreate && step.Recreating:
			steps[i], err = a.checkSuccessor(ctx, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkInitial replaces the steps of an initial plan. Each child passes a dry run, because a
// refusal of the last child must not leave the first ones in the member. The StatefulSet
// passes a live read only, since it is applied before the others.
func (a *Applier) checkInitial(ctx context.Context, plan *Plan, steps []Step) error {
	for i := range steps {
		if steps[i].obstructed() {
			// The cache may show a deleted object, such as a child of the predecessor.
			step, err := a.lookUp(ctx, &plan.Owner, &steps[i])
			if err != nil {
				return err
			}
			steps[i] = step
		}
	}
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Failure != nil }) {
		return nil
	}
	first := plan.first()
	var all sync.WaitGroup
	for i := range steps {
		all.Go(func() { steps[i] = a.dryRun(ctx, &plan.Owner, &steps[i], i == first) })
	}
	all.Wait()
	return nil
}

// obstructed reports whether an object in the informer cache prevents a step. A stale cache
// may show an object that is deleted.
func (s *Step) obstructed() bool {
	return s.Action == Refuse || s.Action == Wait && s.Live != nil && s.Live.GetDeletionTimestamp() != nil
}

// lookUp decides a step again with the live object from the API server. A step whose object
// cannot be read waits, because another owner's object may exist.
func (a *Applier) lookUp(ctx context.Context, owner *Owner, step *Step) (Step, error) {
	found, err := a.get(ctx, step.Key())
	if err != nil {
		return waitFor(step, failure.Of(err, "read", step.Key().String()))
	}
	if found == nil {
		a.writes.forgetWrite(step.Key(), a.namespace)
		return decide(step.original, nil, owner, nil), nil
	}
	decided := decide(step.original, found, owner, a.writes.Memory(Live{step.Key(): found}))
	switch {
	case decided.Action == TakeOver && owner.Policies.Takeover == v1alpha1.TakeoverIfMatching:
		return a.match(ctx, &decided)
	case decided.Action == Recreate && decided.Recreating:
		return a.checkSuccessor(ctx, &decided)
	case decided.Action == None, decided.Action == ReportOnly:
		a.writes.Store(step.Key(), a.namespace, found)
	}
	return decided, nil
}

// waitFor returns the step as one that waits for a failure to pass, or an error if the
// failure ends the stage.
func waitFor(step *Step, f *failure.Failure) (Step, error) {
	if aborts(f) {
		return Step{}, &abortError{key: step.Key(), failure: f}
	}
	return step.wait(f), nil
}

// dryRun checks one step of an initial plan. A create is sent as a dry run, except for the
// first step. The answer shows whether an object exists, so a live read follows only then.
func (a *Applier) dryRun(ctx context.Context, owner *Owner, step *Step, first bool) Step {
	var unguarded bool
	var refused *failure.Failure
	if step.Action == Create && !first {
		answer, guarded, err := a.applyIntent(ctx, step, client.DryRunAll)
		unguarded = !guarded
		if err == nil && (guarded || answer.GetResourceVersion() == "") {
			return step.sentUnguarded(unguarded)
		}
		if refused = failure.Of(err, "apply", step.Key().String()); refused != nil && !apierrors.IsConflict(err) && !causedByObject(refused) {
			return step.wait(refused)
		}
	}
	checked, err := a.lookUp(ctx, owner, step)
	switch {
	case err != nil:
		return step.wait(failure.Of(err, "read", step.Key().String()))
	case checked.Failure != nil:
		return checked
	case checked.Action == Create && refused != nil && refused.Reason != v1alpha1.ReasonObjectOfAnother:
		// No object exists: the API server refuses the intent itself.
		return step.wait(refused)
	case checked.Action == TakeOver && owner.Policies.Takeover == v1alpha1.TakeoverAlways:
		if _, _, err := a.applyIntent(ctx, &checked, client.DryRunAll); err != nil {
			return checked.wait(failure.Of(err, "take over", step.Key().String()))
		}
	}
	return checked.sentUnguarded(unguarded)
}

// sentUnguarded returns the step with the knowledge whether the member accepts
// absentVersion, so that Execute does not test it a second time.
func (s *Step) sentUnguarded(unguarded bool) Step {
	next := *s
	next.unguarded = unguarded
	return next
}

// causedByObject reports whether an existing object may be why a first apply was refused:
// its owner owns a field, or the merge with it is not valid.
func causedByObject(f *failure.Failure) bool {
	switch f.Reason {
	case v1alpha1.ReasonObjectOfAnother, v1alpha1.ReasonImmutableField, v1alpha1.ReasonRejected:
		return true
	}
	return false
}

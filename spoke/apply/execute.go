package apply

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// Execute writes what a resolved plan decided, and returns a result for each step and for
// each target that it pruned. The failure of one child does not stop the next, unless it
// ends the plan, see aborts.
func (a *Applier) Execute(ctx context.Context, plan Plan) []Result {
	results := notExecuted(plan.Steps)
	run := func(i int) *failure.Failure {
		results[i] = a.executeStep(ctx, &plan.Owner, &plan.Steps[i])
		return results[i].Failure
	}
	switch {
	case plan.Blocked:
		for i := range plan.Steps {
			if plan.Steps[i].Failure != nil {
				_ = run(i)
			}
		}
	case plan.Initial:
		executeInitial(&plan, run)
	default:
		for i := range plan.Steps {
			if aborts(run(i)) {
				break
			}
		}
	}
	if slices.ContainsFunc(results, func(r Result) bool { return r.Failure != nil }) {
		// Until every child is applied, the children to be pruned may be the only working ones.
		return results
	}
	for _, target := range plan.Prune {
		pruned := a.prune(ctx, target)
		results = append(results, pruned)
		if aborts(pruned.Failure) {
			break
		}
	}
	return results
}

// executeInitial runs the steps of an initial plan: the StatefulSet, which passed no dry
// run, then all others in parallel. No child depends on another one, and each would cost a
// round trip to a distant member.
func executeInitial(plan *Plan, run func(i int) *failure.Failure) {
	first := plan.first()
	if first >= 0 && run(first) != nil {
		return
	}
	var others sync.WaitGroup
	for i := range plan.Steps {
		if i != first {
			others.Go(func() { _ = run(i) })
		}
	}
	others.Wait()
}

// executeStep executes one step and logs it.
func (a *Applier) executeStep(ctx context.Context, owner *Owner, step *Step) Result {
	start := a.now()
	var result Result
	switch step.Action {
	case None:
		result = a.unchanged(step)
	case ReportOnly:
		result = step.reportOnly(owner)
	case Recreate:
		result = a.recreate(ctx, owner, step)
	case RemoveForeign:
		result = a.removeForeign(ctx, owner, step)
	case Correct, Update:
		applied, err := a.correct(ctx, step)
		if rejected(err, step) {
			applied, err = a.replaceSiblings(ctx, owner, step, err)
		}
		result = a.applied(owner, step, applied, err)
	case Create, TakeOver:
		applied, _, err := a.applyIntent(ctx, step)
		result = a.applied(owner, step, applied, err)
	default:
		result = step.result()
	}
	if step.hasForeign() && step.Action != RemoveForeign && !step.Deferred {
		foreign := RemainingDrift{Key: step.Key(), Fields: step.Foreign, Foreign: true, Found: step.Live}
		result.Remaining = append([]RemainingDrift{foreign}, result.Remaining...)
	}
	a.logStep(ctx, step, &result, a.now().Sub(start))
	return result
}

// unchanged returns the result of a child that is as desired. It reports an earlier
// correction whose answer was lost: the member carried it out.
func (a *Applier) unchanged(step *Step) Result {
	result := step.resultWith(step.Live)
	if change, since, ok := a.writes.takeUnconfirmed(step.Key(), a.namespace); ok {
		change.DoneAt = a.now()
		change.Took = change.DoneAt.Sub(since)
		result.Change = &change
	}
	return result
}

// applied returns the result of a write, and records in the write cache what it taught.
func (a *Applier) applied(owner *Owner, step *Step, applied client.Object, err error) Result {
	key := step.Key()
	change := &Change{Key: key, Action: step.Action, Drift: step.Drift, Deleted: step.Deleted, Intent: step.Intent, Found: step.Live, DoneAt: a.now()}
	// Computed after the write, which must not wait for it.
	change.Reclaimed = step.Action == Correct && step.reclaims()
	if err != nil {
		return a.notApplied(owner, step, change, applyFailure(err, step))
	}
	a.writes.learn(&step.Desired, applied)
	a.writes.Store(key, a.namespace, applied)
	since := a.eventTime
	if _, first, ok := a.writes.takeUnconfirmed(key, a.namespace); ok {
		since = first
	}
	result := step.resultWith(applied)
	if failed := step.mutationFailure(applied, &owner.DriftPolicy); failed != nil {
		result.Failure = failed
		result.Remaining = []RemainingDrift{step.mutatedDrift(applied)}
		return result
	}
	change.Took = change.DoneAt.Sub(since)
	result.Change = change
	return result
}

// notApplied returns the result of a failed write.
func (a *Applier) notApplied(owner *Owner, step *Step, change *Change, failed *failure.Failure) Result {
	if change.Drifted() && failed.IsRefusal() {
		return a.refused(owner, step, failed)
	}
	if change.Drifted() {
		a.writes.storeUnconfirmed(step.Key(), a.namespace, *change, a.eventTime)
	}
	// The write may have been carried out although its answer was lost.
	return Result{Key: step.Key(), Action: step.Action, Failure: failed, Unobserved: change.Drifted() || step.Action == Update}
}

// refused returns the result of a correction that the member refused: the drift remains.
func (a *Applier) refused(owner *Owner, step *Step, failed *failure.Failure) Result {
	// No earlier attempt succeeded either.
	a.writes.takeUnconfirmed(step.Key(), a.namespace)
	result := step.reportOnly(owner)
	for i := range result.Remaining {
		result.Remaining[i].Refused = true
	}
	result.Failure = failed
	if failed.Reason == v1alpha1.ReasonRejected && step.Live != nil {
		hinted := *failed
		hinted.Hint = "revert in the member the change that openDrifts names, or delete " + step.Key().String() + " there: the hub creates it again"
		result.Failure = &hinted
	}
	return result
}

// prune deletes a child that is no longer desired.
func (a *Applier) prune(ctx context.Context, target Target) Result {
	result := Result{Key: target.Key, Action: Prune}
	if target.Deleting {
		return result
	}
	start := a.now()
	deleted, err := a.delete(ctx, target, foreground)
	if err != nil {
		noted := target.entry()
		result.Entry, result.Failure = &noted, failure.Of(err, "prune", target.Key.String())
	} else {
		result.Change = &Change{Key: target.Key, Action: Prune, DoneAt: a.now()}
	}
	a.logRemoval(ctx, Prune, target, deleted, result.Failure, a.now().Sub(start))
	return result
}

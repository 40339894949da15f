package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/outcome"
)

// confirm looks up whatever the cache calls absent: it may be behind, or not show
// a child because somebody removed its label. Only then is anything written, and
// never a child that could not be looked up: an object of somebody else may be
// there, and an apply without force joins it where no field conflicts.
func (a *Applier) confirm(ctx context.Context, plan *Plan, report *Report) (stop bool) {
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.Verb != Create {
			continue
		}
		found, err := a.lookUp(ctx, step.Key())
		if err != nil {
			failure := outcome.Of(err, "read", step.Key().String())
			if failure.Class == v1alpha1.ClassUnreachable {
				return report.fail(failure)
			}
			step.Verb, step.Problem = Wait, failure
			continue
		}
		if found == nil {
			continue
		}
		*step = decide(step.Desired, found, a.Owner, a.Recent)
		if step.Verb == Keep {
			a.Recent.Put(step.Key(), a.Namespace, found)
		}
	}
	return false
}

// begun says that some child of this owner is or was in the member. Until then a
// member takes all of the children or none.
func (p *Plan) begun(owner Owner) bool {
	for i := range p.Steps {
		switch p.Steps[i].Verb {
		case Keep, Update, Repair:
			return true
		}
	}
	return len(owner.Inventory) > 0
}

// rehearse has the member check every child of a cache that it does not hold yet,
// without writing one: what it would refuse for the last child must not leave the
// first ones behind. What is known to be in the way is enough to say so, and costs
// no request.
func (a *Applier) rehearse(ctx context.Context, plan *Plan, report *Report) {
	for i := range plan.Steps {
		if problem := plan.Steps[i].Problem; problem != nil {
			report.fail(problem)
		}
	}
	if len(report.Failures) > 0 {
		return
	}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if _, err := a.write(ctx, step, client.DryRunAll); err != nil {
			if report.fail(foreign(outcome.Of(err, "apply", step.Key().String()), step)) {
				return
			}
		}
	}
}

package controller

import (
	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// decision is the plan of one reconcile, or the failure that prevents a plan.
type decision struct {
	applier *apply.Applier
	plan    apply.Plan
	// failure that prevents all writes, or nil. The children are still observed.
	failure *failure.Failure
	// unverified is the error that kept the hub from verifying the MemberCache.
	unverified error
}

// decide renders the desired children and plans how to reach them.
func (m *member) decide(s *snapshot) decision {
	desired, problems, err := m.render(s.state, s.cache, s.now)
	switch {
	case err != nil:
		return decision{failure: failure.Of(err, "render", s.cache.Name)}
	case len(problems) > 0:
		return decision{failure: invalidSpec(problems)}
	}
	return decision{applier: m.applier(s), plan: apply.Decide(desired, s.live, m.planOwner(s), m.writeCache.Memory(s.live))}
}

// applier returns the applier of one MemberCache.
func (m *member) applier(s *snapshot) *apply.Applier {
	return apply.New(apply.Options{
		Client: s.engaged.Cluster.GetClient(), Reader: s.engaged.Cluster.GetAPIReader(), Writes: m.writeCache,
		Namespace: s.cache.Namespace, CreateNamespace: s.cache.Spec.CreateNamespace,
		Defer: func(step *apply.Step) bool {
			drifted := func() v1alpha1.DriftFinding { return describeStep(step) }
			return s.state.conflicts.defers(step.Key(), drifted, m.clock.Now())
		},
		Now: m.clock.Now, EventTime: s.arrived,
	})
}

// planOwner returns the owner of the children with the policies that a plan follows.
func (m *member) planOwner(s *snapshot) apply.Owner {
	owner := s.owner()
	owner.DriftPolicy, _ = drift.NewPolicy(&s.cache.Spec.Policies)
	owner.DriftPolicy.Scalers = s.scalers
	owner.Typer, owner.IntentChanged = m.typer, s.cache.Status.Revision != s.cache.Spec.Revision
	return owner
}

// owner identifies the children of a MemberCache.
func (s *snapshot) owner() apply.Owner {
	return apply.Owner{Mark: children.OwnerMark(s.cache), Inventory: s.inventory, Policies: s.cache.Spec.Policies}
}

func invalidSpec(problems []validation.Problem) *failure.Failure {
	message := ""
	for i, p := range problems {
		if i > 0 {
			message += "; "
		}
		message += "spec." + p.String()
	}
	return &failure.Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec, Message: message,
		Hint: "correct the field in the CacheCluster; nothing was changed in the member"}
}

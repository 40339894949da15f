package render

import (
	"fmt"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// CheckPolicies finds what nobody could act on.
func CheckPolicies(p *v1alpha1.Policies) []Problem {
	var problems []Problem
	_, unreadable := drift.NewPolicy(p)
	for _, u := range unreadable {
		problems = append(problems, Problem{Field: fmt.Sprintf("drift.ignore[%d].path", u.Index), Value: u.Path,
			Fix: u.Err.Error() + "; write it as status.clusters[].lastDrift.fields shows it, such as spec.replicas or spec.template.spec.containers[name=\"memcached\"].image"})
	}
	return problems
}

package validation

import (
	"fmt"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/fieldpattern"
)

// Policies returns the problems of policies: ignore rules whose path cannot be parsed.
func Policies(p *v1alpha1.Policies) []Problem {
	var problems []Problem
	for i, rule := range p.Ignored() {
		if rule.Path == "" {
			continue
		}
		if _, err := fieldpattern.Parse(rule.Path); err != nil {
			problems = append(problems, Problem{Field: fmt.Sprintf("drift.ignore[%d].path", i), Value: rule.Path,
				Fix: err.Error() + "; copy it from status.clusters[].lastDrift.fields, such as spec.replicas or spec.template.spec.containers[name=\"memcached\"].image"})
		}
	}
	return problems
}

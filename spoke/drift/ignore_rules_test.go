package drift_test

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/fieldpattern"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestFieldPattern_ParsesEveryPathOfIntent(t *testing.T) {
	// A user copies a path from the status into a rule.
	_, _, intentFields := statefulSet(t)
	for p := range intentFields.All() {
		text := strings.TrimPrefix(p.String(), ".")
		if got, err := fieldpattern.Parse(text); err != nil || got != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestNewPolicy_ReportsInvalidRule(t *testing.T) {
	policy, problems := drift.NewPolicy(&v1alpha1.Policies{Drift: &v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{
		{Path: "spec.replicas"}, {Path: "replicas"}, {Manager: "hpa"},
	}}})
	if len(problems) != 1 || problems[0].Index != 1 || problems[0].Path != "replicas" || len(policy.Ignore) != 2 {
		t.Errorf("problems %v, rules %v", problems, policy.Ignore)
	}
}

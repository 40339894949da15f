package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

func TestPolicies_RefusesInvalidPath(t *testing.T) {
	mc := memberCache(v1alpha1.CacheTemplate{})
	mc.Spec.Policies.Drift = &v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{{Manager: "hpa"}, {Path: "replicas"}}}
	children, problems := render.Render(mc)
	if len(children) > 0 || len(problems) != 1 {
		t.Fatalf("%d children, problems %v", len(children), problems)
	}
	if got := problems[0].String(); !strings.HasPrefix(got, `drift.ignore[1].path: "replicas": a path must begin with spec or metadata; copy it from `) {
		t.Error(got)
	}
	if diff := cmp.Diff(problems, validation.Policies(&mc.Spec.Policies)); diff != "" {
		t.Errorf("Policies returns other problems than Render:\n%s", diff)
	}
	mc.Spec.Policies.Drift.Ignore[1].Path = "spec.replicas"
	if _, problems := render.Render(mc); len(problems) > 0 {
		t.Error(problems)
	}
}

package render

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestAPathOfAnIgnoreRuleThatCannotBeReadIsAProblem(t *testing.T) {
	mc := memberCache("sessions", v1alpha1.CacheTemplate{})
	mc.Spec.Policies.Drift = &v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{{Manager: "hpa"}, {Path: "replicas"}}}
	children, problems := Render(mc)
	if len(children) > 0 || len(problems) != 1 {
		t.Fatalf("%d children, problems %v", len(children), problems)
	}
	if got := problems[0].String(); !strings.HasPrefix(got, `drift.ignore[1].path: "replicas": a path begins with spec or metadata; write it as `) {
		t.Error(got)
	}
	mc.Spec.Policies.Drift.Ignore[1].Path = "spec.replicas"
	if _, problems := Render(mc); len(problems) > 0 {
		t.Error(problems)
	}
}

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func finding(object string, changes ...v1alpha1.FieldChange) v1alpha1.DriftFinding {
	f := v1alpha1.DriftFinding{Object: object, Manager: "kubectl-edit", Changes: changes}
	for _, c := range changes {
		f.Fields = append(f.Fields, c.Path)
	}
	return f
}

func TestDriftFields_ShowsKnownValues(t *testing.T) {
	f := finding("StatefulSet/a", v1alpha1.FieldChange{Path: "spec.replicas", Was: "2", Is: "5"}, v1alpha1.FieldChange{Path: "metadata.labels.x", Was: `"y"`, Manager: "unknown"},
		v1alpha1.FieldChange{Path: "spec.a", Was: "1", Is: "2", Manager: "argocd"})
	f.OmittedFields = 3
	if got, want := driftFields(&f), `spec.replicas 2 → 5, metadata.labels.x "y" → nothing, spec.a 1 → 2 (by argocd), and 3 more`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d := &v1alpha1.Drift{DriftFinding: finding("StatefulSet/a", v1alpha1.FieldChange{Path: "spec.replicas", Was: "2", Is: "5"}), At: metav1.NewMicroTime(noon), RepairedIn: metav1.Duration{Duration: 11 * time.Millisecond}}
	if got, want := correctedDriftLine("m", d.Object, d, noon), "drift detected and corrected in 11ms  m StatefulSet/a spec.replicas 2 → 5 (was changed by kubectl-edit; corrected at 12:00:00)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTracker_ReportsRemainingDriftOnce(t *testing.T) {
	at := metav1.NewTime(noon)
	f := finding("StatefulSet/a", v1alpha1.FieldChange{Path: "spec.replicas", Was: "2", Is: "5"})
	f.ChangedAt = &at
	sidecar := finding("StatefulSet/a", v1alpha1.FieldChange{Path: "c", Is: `{"name":"x"}`})
	sidecar.Foreign = true
	gone := v1alpha1.DriftFinding{Object: "Service/a", Deleted: true, Manager: "unknown"}
	sight := func(open ...v1alpha1.DriftFinding) *v1alpha1.CacheCluster {
		m := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
		m.OpenDrifts = open
		return sampleCache(m)
	}
	lines := func(happened []event) (out []string) {
		for _, h := range happened {
			if h.Type == "OpenDrift" {
				out = append(out, h.line)
			}
		}
		return out
	}
	tr := newTracker(func() time.Time { return noon }, false)
	const ofSet = "drift detected and not corrected  member-1 StatefulSet/a spec.replicas 2 → 5 (was changed by kubectl-edit at 12:00:00)"
	for i, step := range []struct {
		open []v1alpha1.DriftFinding
		want []string
	}{
		{[]v1alpha1.DriftFinding{f}, []string{ofSet}},
		{[]v1alpha1.DriftFinding{f}, nil},
		{[]v1alpha1.DriftFinding{gone, f, sidecar}, []string{"drift detected and not corrected  member-1 Service/a (was deleted)",
			`drift detected and not corrected  member-1 StatefulSet/a c → {"name":"x"} (was added by kubectl-edit)`}},
		{nil, nil},
		{[]v1alpha1.DriftFinding{f}, []string{ofSet}},
	} {
		if got := lines(tr.update(sight(step.open...))); !slices.Equal(got, step.want) {
			t.Errorf("sight %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestPrintStatus_ShowsRemainingAndCorrectedDrift(t *testing.T) {
	m := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
	m.OpenDrifts = []v1alpha1.DriftFinding{finding("Service/a", v1alpha1.FieldChange{Path: "spec.selector", Was: "{}", Is: "{}"})}
	m.LastDrift = &v1alpha1.Drift{DriftFinding: finding("StatefulSet/a", v1alpha1.FieldChange{Path: "spec.replicas", Was: "2", Is: "5"}), RepairedIn: metav1.Duration{Duration: 11 * time.Millisecond}}
	var out strings.Builder
	if err := printStatus(&out, sampleCache(m), noon); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  not corrected: Service/a spec.selector {} → {} (was changed by kubectl-edit)\n", "\n  corrected in 11ms: StatefulSet/a spec.replicas 2 → 5 (was changed by kubectl-edit)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

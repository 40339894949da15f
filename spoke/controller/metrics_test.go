package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// familiesOf returns the families of this project with a series of the member, by name.
func familiesOf(t *testing.T, member string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "reconcile_lab_") {
			continue
		}
		for _, series := range f.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "cluster" && label.GetValue() == member {
					found[f.GetName()] += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return found
}

// measure counts one of each kind for a member.
func measure(name string) {
	countReconcile(name, nil)
	countReconcile(name, failureOf(v1alpha1.ClassBlocked, "Forbidden"))
	countRetry(name, v1alpha1.ClassBlocked)
	observeCorrections(name, []apply.Change{{Key: apply.Key{Kind: children.ServiceKind}, Action: apply.Correct, Took: time.Second}, {Action: apply.Update}})
	one := v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}, Manager: "hpa"}
	countReported(name, nil, []v1alpha1.DriftFinding{one})
	countReported(name, []v1alpha1.DriftFinding{one}, []v1alpha1.DriftFinding{one})
}

func TestMetrics_EndWithTheirMember(t *testing.T) {
	measure("measured")
	for name, want := range map[string]float64{
		"reconcile_lab_member_reconciles_total": 2, "reconcile_lab_member_retries_total": 1,
		"reconcile_lab_drift_found_total": 2, "reconcile_lab_drift_repaired_total": 1, "reconcile_lab_drift_repair_seconds": 1,
	} {
		if got, exists := familiesOf(t, "measured")[name]; !exists || got != want {
			t.Errorf("%s is %v (exists: %t), want %v", name, got, exists, want)
		}
	}
	forgetMember("measured")
	if remaining := familiesOf(t, "measured"); len(remaining) != 0 {
		t.Errorf("series of a removed member: %v", remaining)
	}
}

func TestMetrics_PassPromlint(t *testing.T) {
	measure("linted")
	defer forgetMember("linted")
	registry := prometheus.NewRegistry()
	registry.MustRegister(correctionTime, driftFound, driftCorrected, reconcilesTotal, retriesTotal)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

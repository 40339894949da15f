package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	clocktesting "k8s.io/utils/clock/testing"
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

// measured returns a member with a value in each series.
func measured(name string, clock *clocktesting.FakePassiveClock) *member {
	m := &member{clock: clock, name: name, retries: newRetries(), queued: make(chan struct{})}
	beginWork(m)
	m.states.record(sessionsKey, event, false, clock.Now())
	countReconcile(name, nil)
	countReconcile(name, failureOf(v1alpha1.ClassBlocked, "Forbidden"))
	countRetry(name, v1alpha1.ClassBlocked)
	observeCorrections(name, []apply.Change{{Key: apply.Key{Kind: children.ServiceKind}, Action: apply.Correct, Took: time.Second}, {Action: apply.Update}})
	one := v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}, Manager: "hpa"}
	countReported(name, nil, []v1alpha1.DriftFinding{one})
	countReported(name, []v1alpha1.DriftFinding{one}, []v1alpha1.DriftFinding{one})
	return m
}

func TestMetrics_EndWithTheirMember(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	m := measured("measured", clock)
	clock.SetTime(noon.Add(7 * time.Second))
	for name, want := range map[string]float64{
		"reconcile_lab_member_reconciles_total": 2, "reconcile_lab_member_retries_total": 1,
		"reconcile_lab_drift_found_total": 2, "reconcile_lab_drift_repaired_total": 1, "reconcile_lab_drift_repair_seconds": 1,
		"reconcile_lab_member_queue_oldest_seconds": 7, "reconcile_lab_member_queue_depth": 0,
	} {
		if got, exists := familiesOf(t, "measured")[name]; !exists || got != want {
			t.Errorf("%s is %v (exists: %t), want %v", name, got, exists, want)
		}
	}
	m.states.begin(m.states.get(sessionsKey))
	if got := familiesOf(t, "measured")["reconcile_lab_member_queue_oldest_seconds"]; got != 0 {
		t.Errorf("the queue is empty, and the oldest event is %v s old", got)
	}
	endWork(m)
	if left := familiesOf(t, "measured"); len(left) != 0 {
		t.Errorf("series of a member that left: %v", left)
	}
}

func TestMetrics_MergeTwoManagersOfOneProcess(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	one, two := measured("twice", clock), measured("twice", clock)
	clock.SetTime(noon.Add(time.Second))
	if got := familiesOf(t, "twice")["reconcile_lab_member_queue_oldest_seconds"]; got != 1 {
		t.Errorf("the oldest event is %v s old", got)
	}
	endWork(one)
	if len(familiesOf(t, "twice")) == 0 {
		t.Error("the member still works for the other manager")
	}
	endWork(two)
}

func TestMetrics_PassPromlint(t *testing.T) {
	m := measured("linted", clocktesting.NewFakePassiveClock(noon))
	defer endWork(m)
	registry := prometheus.NewRegistry()
	registry.MustRegister(correctionTime, driftFound, driftCorrected, reconcilesTotal, retriesTotal, queueDepth, queueAge)
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

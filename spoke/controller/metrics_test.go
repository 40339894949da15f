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
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// ours are the families of this project with a series of the member, by name.
func ours(t *testing.T, member string) map[string]float64 {
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

// measured is a member that has work of every kind behind it.
func measured(name string, clock *clocktesting.FakePassiveClock) *member {
	c := New(Options{Clock: clock})
	m := &member{Controller: c, name: name, retries: newRetries(), queued: make(chan struct{})}
	beginWork(m)
	m.waiting.begin(tried, clock.Now())
	countReconcile(name, nil)
	countReconcile(name, failureOf(v1alpha1.ClassBlocked, "Forbidden"))
	countRetry(name, v1alpha1.ClassBlocked)
	observeRepairs(name, []apply.Change{{Key: apply.Key{Kind: render.ServiceKind}, Action: apply.Correct, Took: time.Second}, {Action: apply.Update}})
	one := v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}, Manager: "hpa"}
	countReported(name, nil, []v1alpha1.DriftFinding{one})
	countReported(name, []v1alpha1.DriftFinding{one}, []v1alpha1.DriftFinding{one})
	return m
}

func TestTheSeriesOfAMemberCountWhatWasDoneAndGoWithIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	m := measured("measured", clock)
	clock.SetTime(noon.Add(7 * time.Second))
	for name, want := range map[string]float64{
		"reconcile_lab_member_reconciles_total": 2, "reconcile_lab_member_retries_total": 1,
		"reconcile_lab_drift_found_total": 2, "reconcile_lab_drift_repaired_total": 1, "reconcile_lab_drift_repair_seconds": 1,
		"reconcile_lab_member_queue_oldest_seconds": 7, "reconcile_lab_member_queue_depth": 0,
	} {
		if got, there := ours(t, "measured")[name]; !there || got != want {
			t.Errorf("%s is %v (there: %t), want %v", name, got, there, want)
		}
	}
	m.waiting.end(tried)
	if got := ours(t, "measured")["reconcile_lab_member_queue_oldest_seconds"]; got != 0 {
		t.Errorf("nothing waits, and the oldest is %v s old", got)
	}
	endWork(m)
	if left := ours(t, "measured"); len(left) != 0 {
		t.Errorf("the member has left, and these have not: %v", left)
	}
}

func TestTwoManagersOfOneProcessDoNotBreakTheMetrics(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	one, two := measured("twice", clock), measured("twice", clock)
	clock.SetTime(noon.Add(time.Second))
	if got := ours(t, "twice")["reconcile_lab_member_queue_oldest_seconds"]; got != 1 {
		t.Errorf("the oldest is %v s old", got)
	}
	endWork(one)
	if len(ours(t, "twice")) == 0 {
		t.Error("the member still works for the other one")
	}
	endWork(two)
}

func TestTheMetricsPassPromlint(t *testing.T) {
	m := measured("linted", clocktesting.NewFakePassiveClock(noon))
	defer endWork(m)
	registry := prometheus.NewRegistry()
	registry.MustRegister(repairTime, driftFound, driftRepaired, reconcilesTotal, retriesTotal, queueDepth, queueAge)
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

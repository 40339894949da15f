package memberqueue

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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

// waiting is a Member whose oldest event waits for a time.
type waiting struct {
	Member
	time.Duration
}

func (w waiting) OldestEvent() time.Duration { return w.Duration }

func measured(name string, oldest time.Duration) *Queue {
	q := &Queue{name: name, member: waiting{Duration: oldest}, started: make(chan struct{})}
	register(q)
	return q
}

func TestGauges_EndWithTheirMember(t *testing.T) {
	q := measured("measured", 7*time.Second)
	for name, want := range map[string]float64{"reconcile_lab_member_queue_oldest_seconds": 7, "reconcile_lab_member_queue_depth": 0} {
		if got, exists := familiesOf(t, "measured")[name]; !exists || got != want {
			t.Errorf("%s is %v (exists: %t), want %v", name, got, exists, want)
		}
	}
	stopped := ""
	unregister(q, func(member string) { stopped = member })
	if remaining := familiesOf(t, "measured"); len(remaining) != 0 || stopped != "measured" {
		t.Errorf("series of a removed member: %v; stopped is called for %q", remaining, stopped)
	}
}

func TestGauges_MergeTwoManagersOfOneProcess(t *testing.T) {
	one, two := measured("twice", time.Second), measured("twice", 3*time.Second)
	if got := familiesOf(t, "twice")["reconcile_lab_member_queue_oldest_seconds"]; got != 3 {
		t.Errorf("the oldest event is %v s old", got)
	}
	unregister(one, func(string) { t.Error("the member still works for the other manager") })
	if len(familiesOf(t, "twice")) == 0 {
		t.Error("the series ended with the first manager")
	}
	unregister(two, func(string) {})
}

func TestGauges_PassPromlint(t *testing.T) {
	q := measured("linted", 0)
	defer unregister(q, func(string) {})
	registry := prometheus.NewRegistry()
	registry.MustRegister(queueDepth, queueAge)
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

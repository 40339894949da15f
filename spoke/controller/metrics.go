package controller

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// No series carries the name of a cache. docs/metrics.md states how many a member
// has, and they go with the member.
var (
	correctionTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "reconcile_lab", Name: "drift_repair_seconds",
		Help:    "Time from the arrival of an event that shows drift to the API server's answer that the object is right again.",
		Buckets: []float64{.005, .01, .02, .04, .08, .16, .32, .64, 1.28, 2.5, 5, 10, 30},
	}, []string{"cluster", "kind"})
	driftFound = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "drift_found_total",
		Help: "Drifts of children that were found, put right or not.",
	}, []string{"cluster", "kind"})
	driftCorrected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "drift_repaired_total",
		Help: "Drifts of children that were put right.",
	}, []string{"cluster", "kind"})
	reconcilesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_reconciles_total",
		Help: "Reconciles of a MemberCache in a member, by the class of the failure that they met, or OK.",
	}, []string{"cluster", "class"})
	retriesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_retries_total",
		Help: "Tries that were made because an earlier one had failed, by the class of that failure.",
	}, []string{"cluster", "class"})
)

// queueDepth and queueAge are collected from the queues when they are asked for.
var (
	queueDepth = newQueueGauge(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_queue_depth",
		Help: "MemberCaches of a member that wait for a worker.",
	}, func(m *member) float64 { return float64(m.depth()) }, func(a, b float64) float64 { return a + b })
	queueAge = newQueueGauge(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_queue_oldest_seconds",
		Help: "How long the oldest event of a member has waited for a worker.",
	}, func(m *member) float64 { return m.states.oldest(m.clock.Now()).Seconds() }, func(a, b float64) float64 { return max(a, b) })
)

func init() {
	metrics.Registry.MustRegister(correctionTime, driftFound, driftCorrected, reconcilesTotal, retriesTotal, queueDepth, queueAge)
}

// forgetMember drops the series of a member that nothing here has to do with any
// more.
func forgetMember(name string) {
	of := prometheus.Labels{"cluster": name}
	correctionTime.DeletePartialMatch(of)
	for _, counter := range []*prometheus.CounterVec{driftFound, driftCorrected, reconcilesTotal, retriesTotal} {
		counter.DeletePartialMatch(of)
	}
}

func countRetry(cluster string, class v1alpha1.ErrorClass) {
	retriesTotal.WithLabelValues(cluster, string(class)).Inc()
}

func countReconcile(cluster string, f *failure.Failure) {
	class := "OK"
	if f != nil {
		class = string(f.Class)
	}
	reconcilesTotal.WithLabelValues(cluster, class).Inc()
}

func observeCorrections(cluster string, changes []apply.Change) {
	for i := range changes {
		if change := &changes[i]; change.Drifted() {
			kind := change.Key.Kind.Kind
			driftFound.WithLabelValues(cluster, kind).Inc()
			driftCorrected.WithLabelValues(cluster, kind).Inc()
			correctionTime.WithLabelValues(cluster, kind).Observe(change.Took.Seconds())
		}
	}
}

// countReported counts drifts that stand in the status for the first time and are
// not put right.
func countReported(cluster string, old, next []v1alpha1.DriftFinding) {
	for i := range next {
		if !slices.ContainsFunc(old, func(known v1alpha1.DriftFinding) bool { return sameDrift(&known, &next[i]) }) {
			kind, _, _ := strings.Cut(next[i].Object, "/")
			driftFound.WithLabelValues(cluster, kind).Inc()
		}
	}
}

func (m *member) depth() int {
	select {
	case <-m.queued:
		return m.queue.Len()
	default:
		return 0
	}
}

// queueGauge has one series for each member that has workers now. Two managers of
// one process, as in tests, may have members of the same name: they are merged.
type queueGauge struct {
	description *prometheus.Desc
	value       func(*member) float64
	merge       func(a, b float64) float64
}

func newQueueGauge(o prometheus.GaugeOpts, value func(*member) float64, merge func(a, b float64) float64) *queueGauge {
	name := prometheus.BuildFQName(o.Namespace, o.Subsystem, o.Name)
	return &queueGauge{prometheus.NewDesc(name, o.Help, []string{"cluster"}, nil), value, merge}
}

// working are the members that have workers now.
var working struct {
	mu      sync.Mutex
	members map[*member]struct{}
}

func beginWork(m *member) {
	working.mu.Lock()
	defer working.mu.Unlock()
	if working.members == nil {
		working.members = map[*member]struct{}{}
	}
	working.members[m] = struct{}{}
}

func endWork(m *member) {
	working.mu.Lock()
	defer working.mu.Unlock()
	delete(working.members, m)
	for other := range working.members {
		if other.name == m.name {
			return
		}
	}
	forgetMember(m.name)
}

func (g *queueGauge) Describe(all chan<- *prometheus.Desc) { all <- g.description }

func (g *queueGauge) Collect(all chan<- prometheus.Metric) {
	working.mu.Lock()
	values := map[string]float64{}
	for m := range working.members {
		if other, known := values[m.name]; known {
			values[m.name] = g.merge(other, g.value(m))
		} else {
			values[m.name] = g.value(m)
		}
	}
	working.mu.Unlock()
	for name, value := range values {
		all <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, value, name)
	}
}

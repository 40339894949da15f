package memberqueue

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The gauges are computed from the queues when they are collected.
var (
	queueDepth = newGauge(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_queue_depth",
		Help: "MemberCaches of a member that wait for a worker.",
	}, func(q *Queue) float64 { return float64(q.depth()) }, func(a, b float64) float64 { return a + b })
	queueAge = newGauge(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_queue_oldest_seconds",
		Help: "Time since the oldest event of a member that waits for a worker.",
	}, func(q *Queue) float64 { return q.member.OldestEvent().Seconds() }, func(a, b float64) float64 { return max(a, b) })
)

func init() { metrics.Registry.MustRegister(queueDepth, queueAge) }

// running are the queues of this process that have workers now.
var running struct {
	mu     sync.Mutex
	queues map[*Queue]struct{}
}

func register(q *Queue) {
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.queues == nil {
		running.queues = map[*Queue]struct{}{}
	}
	running.queues[q] = struct{}{}
}

// unregister calls stopped if no other queue serves the member. The lock keeps a new queue
// of the member from starting meanwhile.
func unregister(q *Queue, stopped func(member string)) {
	running.mu.Lock()
	defer running.mu.Unlock()
	delete(running.queues, q)
	for other := range running.queues {
		if other.name == q.name {
			return
		}
	}
	stopped(q.name)
}

// gauge has one series for each member that has workers. Two managers of one process, as in
// tests, may have members of the same name: their values are merged.
type gauge struct {
	description *prometheus.Desc
	value       func(*Queue) float64
	merge       func(a, b float64) float64
}

func newGauge(o prometheus.GaugeOpts, value func(*Queue) float64, merge func(a, b float64) float64) *gauge {
	name := prometheus.BuildFQName(o.Namespace, o.Subsystem, o.Name)
	return &gauge{prometheus.NewDesc(name, o.Help, []string{"cluster"}, nil), value, merge}
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(all chan<- *prometheus.Desc) { all <- g.description }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(all chan<- prometheus.Metric) {
	running.mu.Lock()
	values := map[string]float64{}
	for q := range running.queues {
		if other, known := values[q.name]; known {
			values[q.name] = g.merge(other, g.value(q))
		} else {
			values[q.name] = g.value(q)
		}
	}
	running.mu.Unlock()
	for name, value := range values {
		all <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, value, name)
	}
}

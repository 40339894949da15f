package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// repairTime has one series for each member and child kind: some ten members
// times three kinds.
var repairTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Namespace: "reconcile_lab", Name: "drift_repair_seconds",
	Help:    "Time from the arrival of an event that shows drift to the API server's answer that the object is right again.",
	Buckets: []float64{.005, .01, .02, .04, .08, .16, .32, .64, 1.28, 2.5, 5, 10, 30},
}, []string{"cluster", "kind"})

var retriesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "reconcile_lab", Name: "member_retries_total",
	Help: "Tries that were made because an earlier one had failed, by the class of that failure.",
}, []string{"cluster", "class"})

func init() { metrics.Registry.MustRegister(repairTime, retriesTotal) }

func countRetry(cluster string, class v1alpha1.ErrorClass) {
	retriesTotal.WithLabelValues(cluster, string(class)).Inc()
}

func observeRepairs(cluster string, changes []apply.Change) {
	for i := range changes {
		if change := &changes[i]; change.Drifted() {
			repairTime.WithLabelValues(cluster, change.Key.Kind.Kind).Observe(change.Took.Seconds())
		}
	}
}

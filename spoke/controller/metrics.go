package controller

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// No series has the name of a cache. docs/metrics.md states how many series a member has.
// They are deleted with the member.
var (
	correctionTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "reconcile_lab", Name: "drift_repair_seconds",
		Help:    "Time from the arrival of an event that shows drift to the API server's answer to the correction.",
		Buckets: []float64{.005, .01, .02, .04, .08, .16, .32, .64, 1.28, 2.5, 5, 10, 30},
	}, []string{"cluster", "kind"})
	driftFound = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "drift_found_total",
		Help: "Drifts of children that were found, corrected or not.",
	}, []string{"cluster", "kind"})
	driftCorrected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "drift_repaired_total",
		Help: "Drifts of children that were corrected.",
	}, []string{"cluster", "kind"})
	reconcilesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_reconciles_total",
		Help: "Reconciles of a MemberCache in a member, by the class of their failure, or OK.",
	}, []string{"cluster", "class"})
	retriesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_retries_total",
		Help: "Retries after a failed reconcile, by the class of that failure.",
	}, []string{"cluster", "class"})
)

func init() {
	metrics.Registry.MustRegister(correctionTime, driftFound, driftCorrected, reconcilesTotal, retriesTotal)
}

// forgetMember drops the series of a member that no queue serves any more.
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

// countReported counts drifts that the status reports for the first time and that are not
// corrected.
func countReported(cluster string, old, next []v1alpha1.DriftFinding) {
	for i := range next {
		if !slices.ContainsFunc(old, func(known v1alpha1.DriftFinding) bool { return sameDrift(&known, &next[i]) }) {
			kind, _, _ := strings.Cut(next[i].Object, "/")
			driftFound.WithLabelValues(cluster, kind).Inc()
		}
	}
}

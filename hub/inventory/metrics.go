package inventory

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/internal/apirequest"
)

// docs/metrics.md has the number of series that a member may have.
var (
	memberReachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_reachable",
		Help: "1 while the member's API server answers, 0 while it does not.",
	}, []string{"cluster"})
	credentialExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_credential_expiry_timestamp_seconds",
		Help: "When the hub's credential for the member ends, in seconds since 1970; absent if it has no end.",
	}, []string{"cluster"})
	breakerStates = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_breaker_state",
		Help: "1 for the state that the member's circuit breaker is in: closed, suspect or open.",
	}, []string{"cluster", "state"})
	memberRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_requests_total",
		Help: "Requests to the member's API server by verb and status code; the code is error where there was no answer.",
	}, []string{"cluster", "verb", "code"})
	memberLatency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "reconcile_lab", Name: "member_request_seconds",
		Help:    "Time until the member's API server began to answer, watches aside.",
		Buckets: []float64{.005, .02, .1, .5, 2, 10},
	}, []string{"cluster", "verb"})
	members = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "members",
		Help: "Members by state: reachable, unreachable, or unknown before the first probe ended.",
	}, []string{"state"})
)

func init() {
	metrics.Registry.MustRegister(memberReachable, credentialExpiry, breakerStates, memberRequests, memberLatency, members)
}

// breakerState of a member's circuit breaker.
type breakerState string

const (
	breakerClosed  breakerState = "closed"
	breakerSuspect breakerState = "suspect"
	breakerOpen    breakerState = "open"
)

// memberMetrics are the series of one member for as long as it belongs to the hub.
type memberMetrics struct {
	name string

	mu     sync.Mutex
	belong bool
	state  string
}

func newMemberMetrics(name string) *memberMetrics { return &memberMetrics{name: name} }

func (m *memberMetrics) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.belong = true
	m.count("unknown")
}

// end removes every series of the member; whatever still comes is dropped.
func (m *memberMetrics) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count("")
	m.belong = false
	of := prometheus.Labels{"cluster": m.name}
	for _, series := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{memberReachable, credentialExpiry, breakerStates, memberRequests, memberLatency} {
		series.DeletePartialMatch(of)
	}
}

// count moves the member to another state of the gauge members.
func (m *memberMetrics) count(state string) {
	if m.state == state {
		return
	}
	if m.state != "" {
		members.WithLabelValues(m.state).Dec()
	}
	if state != "" {
		members.WithLabelValues(state).Inc()
	}
	m.state = state
}

func (m *memberMetrics) connection(is breakerState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.belong {
		return
	}
	for _, state := range []breakerState{breakerClosed, breakerSuspect, breakerOpen} {
		breakerStates.WithLabelValues(m.name, string(state)).Set(0)
	}
	breakerStates.WithLabelValues(m.name, string(is)).Set(1)
	if is == breakerOpen {
		memberReachable.WithLabelValues(m.name).Set(0)
		m.count("unreachable")
	} else {
		memberReachable.WithLabelValues(m.name).Set(1)
		m.count("reachable")
	}
}

func (m *memberMetrics) expiry(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.belong && !at.IsZero() {
		credentialExpiry.WithLabelValues(m.name).Set(float64(at.Unix()))
	} else {
		credentialExpiry.DeleteLabelValues(m.name)
	}
}

func (m *memberMetrics) request(verb, code string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.belong {
		return
	}
	memberRequests.WithLabelValues(m.name, verb, code).Inc()
	if verb != "watch" && verb != "connect" {
		memberLatency.WithLabelValues(m.name, verb).Observe(took.Seconds())
	}
}

// around counts what goes through a transport.
func (m *memberMetrics) around(next http.RoundTripper) http.RoundTripper {
	return counted{next: next, metrics: m}
}

type counted struct {
	next    http.RoundTripper
	metrics *memberMetrics
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.metrics.request(verbOf(r), code, time.Since(start))
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf returns the verb of a request as RBAC names it, or apply for a patch by server-side
// apply.
func verbOf(r *http.Request) string {
	request := apirequest.Parse(r)
	if request.Apply {
		return "apply"
	}
	return request.Verb
}

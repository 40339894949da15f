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

// docs/metrics.md states the number of series per member.
var (
	memberReachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_reachable",
		Help: "1 while the member is reachable, 0 while it is unreachable.",
	}, []string{"cluster"})
	credentialExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_credential_expiry_timestamp_seconds",
		Help: "End of the hub's credential for the member, in seconds since 1970. Absent if it does not expire.",
	}, []string{"cluster"})
	breakerStates = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "member_breaker_state",
		Help: "1 for the current state of the member's circuit breaker: closed, suspect or open.",
	}, []string{"cluster", "state"})
	memberRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "reconcile_lab", Name: "member_requests_total",
		Help: "Requests to the member's API server by verb and status code. The code is error without a response.",
	}, []string{"cluster", "verb", "code"})
	memberLatency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "reconcile_lab", Name: "member_request_seconds",
		Help:    "Time until the first byte of a response of the member's API server, without watches.",
		Buckets: []float64{.005, .02, .1, .5, 2, 10},
	}, []string{"cluster", "verb"})
	members = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "reconcile_lab", Name: "members",
		Help: "Members by state: reachable, unreachable, or unknown before the end of the first probe.",
	}, []string{"state"})
)

func init() {
	metrics.Registry.MustRegister(memberReachable, credentialExpiry, breakerStates, memberRequests, memberLatency, members)
}

// breakerState is a state of the circuit breaker of a member.
type breakerState string

const (
	breakerClosed  breakerState = "closed"
	breakerSuspect breakerState = "suspect"
	breakerOpen    breakerState = "open"
)

// memberMetrics holds the series of one member while it belongs to the hub.
type memberMetrics struct {
	name string

	mu sync.Mutex
	// active reports whether the member belongs to the hub.
	active bool
	state  string
}

func newMemberMetrics(name string) *memberMetrics { return &memberMetrics{name: name} }

// begin counts the member as unknown.
func (m *memberMetrics) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active = true
	m.setState("unknown")
}

// end removes every series of the member. Later values are dropped.
func (m *memberMetrics) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setState("")
	m.active = false
	labels := prometheus.Labels{"cluster": m.name}
	for _, series := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{memberReachable, credentialExpiry, breakerStates, memberRequests, memberLatency} {
		series.DeletePartialMatch(labels)
	}
}

// setState moves the member to another state of the gauge members. The caller holds the
// lock.
func (m *memberMetrics) setState(state string) {
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

// setBreaker sets the state of the circuit breaker.
func (m *memberMetrics) setBreaker(current breakerState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.active {
		return
	}
	for _, state := range []breakerState{breakerClosed, breakerSuspect, breakerOpen} {
		breakerStates.WithLabelValues(m.name, string(state)).Set(0)
	}
	breakerStates.WithLabelValues(m.name, string(current)).Set(1)
	if current == breakerOpen {
		memberReachable.WithLabelValues(m.name).Set(0)
		m.setState("unreachable")
	} else {
		memberReachable.WithLabelValues(m.name).Set(1)
		m.setState("reachable")
	}
}

// setExpiry sets the end of the credential; the zero time removes the series.
func (m *memberMetrics) setExpiry(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active && !at.IsZero() {
		credentialExpiry.WithLabelValues(m.name).Set(float64(at.Unix()))
	} else {
		credentialExpiry.DeleteLabelValues(m.name)
	}
}

// countRequest counts one request.
func (m *memberMetrics) countRequest(verb, code string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.active {
		return
	}
	memberRequests.WithLabelValues(m.name, verb, code).Inc()
	if verb != "watch" && verb != "connect" {
		memberLatency.WithLabelValues(m.name, verb).Observe(took.Seconds())
	}
}

// wrapTransport returns a transport that counts requests.
func (m *memberMetrics) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return countingTransport{next: next, metrics: m}
}

type countingTransport struct {
	next    http.RoundTripper
	metrics *memberMetrics
}

// RoundTrip sends a request and counts it.
func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.metrics.countRequest(verbOf(r), code, time.Since(start))
	return response, err
}

// WrappedRoundTripper returns the wrapped transport; client-go unwraps it.
func (c countingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf returns the verb of a request as RBAC names it, or apply for a patch by server-side
// apply.
func verbOf(r *http.Request) string {
	request := apirequest.Parse(r)
	if request.Apply {
		return "apply"
	}
	return request.Verb
}

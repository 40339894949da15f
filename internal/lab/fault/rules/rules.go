package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/internal/apirequest"
)

// Rule describes an action and the requests on which it acts.
type Rule struct {
	Match  Match  `json:"match"`
	Action Action `json:"action"`
	// From is the number of the first matching request on which the rule acts; 0 means 1.
	From int `json:"from,omitempty"`
	// Count is the maximum number of requests on which the rule acts; 0 means no limit.
	Count int `json:"count,omitempty"`
	// Rate is the share of requests on which the rule acts, up to 1; 0 means all.
	Rate float64 `json:"rate,omitempty"`
}

// Match selects requests. An empty field matches every request.
type Match struct {
	Verbs []string `json:"verbs,omitempty"`
	// Resources are plural names, such as "pods", or "pods/status" for a subresource.
	Resources []string `json:"resources,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	// NonResource makes paths without a resource match too, such as /readyz.
	NonResource bool `json:"nonResource,omitempty"`
}

// Matches reports whether the request is selected.
func (m Match) Matches(r apirequest.Request) bool {
	if len(m.Verbs) > 0 && !slices.Contains(m.Verbs, r.Verb) {
		return false
	}
	if r.Resource == "" {
		return m.NonResource
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return (len(m.Resources) == 0 || slices.Contains(m.Resources, resource)) &&
		(m.Namespace == "" || m.Namespace == r.Namespace) &&
		(m.Name == "" || m.Name == r.Name)
}

// Action is what the transport does with a request.
type Action struct {
	// Code is the HTTP status of the response, if not 0. The request is not sent.
	Code int `json:"code,omitempty"`
	// RetryAfter is the Retry-After header of that response, if not 0.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// LoseResponse sends the request and drops the response.
	LoseResponse bool `json:"loseResponse,omitempty"`
}

// ErrResponseLost is the error of a request whose response was dropped.
var ErrResponseLost = errors.New("the response was lost")

// Transport applies to each request the first rule that acts on it.
type Transport struct {
	next http.RoundTripper

	mu     sync.Mutex
	random *rand.Rand
	rules  []*countedRule
}

// countedRule is a rule with the numbers of requests that it has matched and acted on.
type countedRule struct {
	Rule
	matched, acted int
}

// New returns a Transport without rules. The same seed and the same sequence of requests
// result in the same faults.
func New(next http.RoundTripper, seed uint64) *Transport {
	return &Transport{next: next, random: rand.New(rand.NewPCG(seed, 0))}
}

// Set replaces all rules. A rule in both sets keeps its counters: an added rule does not
// restart the Count of another one.
func (t *Transport) Set(rules ...Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.rules
	t.rules = nil
	for _, r := range rules {
		next := &countedRule{Rule: r}
		if i := slices.IndexFunc(old, func(o *countedRule) bool { return reflect.DeepEqual(o.Rule, r) }); i >= 0 {
			next = old[i]
			old = slices.Delete(slices.Clone(old), i, i+1)
		}
		t.rules = append(t.rules, next)
	}
}

// Acted returns the number of requests on which each rule has acted.
func (t *Transport) Acted() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var acted []int
	for _, r := range t.rules {
		acted = append(acted, r.acted)
	}
	return acted
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	action, found := t.decide(apirequest.Parse(r))
	switch {
	case !found:
		return t.next.RoundTrip(r)
	case action.LoseResponse:
		response, err := t.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		// After the end of the response, the API server has executed the request.
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, ErrResponseLost
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return response(r, action), nil
}

// decide returns the action of the first rule that acts on the request.
func (t *Transport) decide(request apirequest.Request) (Action, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rules {
		if !r.Match.Matches(request) {
			continue
		}
		r.matched++
		if r.matched < r.From || r.Count > 0 && r.acted >= r.Count || r.Rate > 0 && t.random.Float64() >= r.Rate {
			continue
		}
		r.acted++
		return r.Action, true
	}
	return Action{}, false
}

// reasons are the reasons in responses of API servers, by HTTP status.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:          metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

// response returns the response of an API server with the status of the action.
func response(r *http.Request, a Action) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(a.Code), Reason: reasons[a.Code],
		Message: fmt.Sprintf("%s (injected)", strings.ToLower(http.StatusText(a.Code))),
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.RetryAfter > 0 {
		seconds := int((a.RetryAfter + time.Second - 1) / time.Second)
		header.Set("Retry-After", strconv.Itoa(seconds))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	}
	// Marshaling this type cannot fail.
	body, _ := json.Marshal(status)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.Code, http.StatusText(a.Code)), StatusCode: a.Code,
		Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

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
)

// Rule says what happens to which requests.
type Rule struct {
	Match  Match  `json:"match"`
	Action Action `json:"action"`
	// From is the first match that counts, from 1; the first if 0.
	From int `json:"from,omitempty"`
	// Count is how many are acted on; every one if 0.
	Count int `json:"count,omitempty"`
	// Rate is the share that is acted on, over 0 and up to 1; every one if 0.
	Rate float64 `json:"rate,omitempty"`
}

// Match chooses requests; what is empty matches everything.
type Match struct {
	Verbs []string `json:"verbs,omitempty"`
	// Resources in the plural; those with a slash are subresources.
	Resources []string `json:"resources,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	// Paths says that paths which are no resources match as well, such as /readyz.
	Paths bool `json:"paths,omitempty"`
}

// Matches says whether the request is chosen.
func (m Match) Matches(r Request) bool {
	if r.Resource == "" {
		return m.Paths && (len(m.Verbs) == 0 || slices.Contains(m.Verbs, r.Verb))
	}
	return (len(m.Verbs) == 0 || slices.Contains(m.Verbs, r.Verb)) &&
		(len(m.Resources) == 0 || slices.Contains(m.Resources, r.Resource)) &&
		(m.Namespace == "" || m.Namespace == r.Namespace) &&
		(m.Name == "" || m.Name == r.Name)
}

// Action is what happens to a request.
type Action struct {
	// Code is answered without asking the API server, if not 0.
	Code int `json:"code,omitempty"`
	// RetryAfter is part of that answer, if not 0.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Lose has the request carried out and its answer lost.
	Lose bool `json:"lose,omitempty"`
}

// ErrLost is the error of a request whose answer was lost.
var ErrLost = errors.New("the answer was lost on the way")

// Transport acts on requests by rules, the first that applies.
type Transport struct {
	next http.RoundTripper

	mu     sync.Mutex
	chance *rand.Rand
	rules  []*counted
}

type counted struct {
	Rule
	matched, acted int
}

// New gives a Transport without rules. The same seed and the same requests in the
// same order make the same faults.
func New(next http.RoundTripper, seed uint64) *Transport {
	return &Transport{next: next, chance: rand.New(rand.NewPCG(seed, 0))}
}

// Set replaces all rules. One that was there before goes on counting: a fault that is
// used up does not begin anew because another one comes.
func (t *Transport) Set(rules ...Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.rules
	t.rules = nil
	for _, r := range rules {
		next := &counted{Rule: r}
		if i := slices.IndexFunc(before, func(old *counted) bool { return reflect.DeepEqual(old.Rule, r) }); i >= 0 {
			next = before[i]
			before = slices.Delete(slices.Clone(before), i, i+1)
		}
		t.rules = append(t.rules, next)
	}
}

// Acted is how many requests each rule has acted on.
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
	action, acts := t.decide(Parse(r))
	switch {
	case !acts:
		return t.next.RoundTrip(r)
	case action.Lose:
		response, err := t.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		// Read to its end: then it is sure to be carried out.
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, ErrLost
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return answer(r, action), nil
}

func (t *Transport) decide(of Request) (Action, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rules {
		if !r.Match.Matches(of) {
			continue
		}
		r.matched++
		if r.matched < r.From || r.Count > 0 && r.acted >= r.Count || r.Rate > 0 && t.chance.Float64() >= r.Rate {
			continue
		}
		r.acted++
		return r.Action, true
	}
	return Action{}, false
}

// reasons of the codes that API servers answer with.
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

// answer is what an API server says with that code.
func answer(r *http.Request, a Action) *http.Response {
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
	// Static types always encode.
	body, _ := json.Marshal(status)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.Code, http.StatusText(a.Code)), StatusCode: a.Code,
		Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

package rules_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/rules"
)

// server records the requests that reach it.
type server struct{ reached []string }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.reached = append(s.reached, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// codes returns the HTTP status of n equal requests; 0 is a lost response.
func codes(t *testing.T, transport http.RoundTripper, method, url string, n int) []int {
	t.Helper()
	var got []int
	for range n {
		response, err := transport.RoundTrip(httptest.NewRequest(method, url, strings.NewReader("body")))
		switch {
		case errors.Is(err, rules.ErrResponseLost):
			got = append(got, 0)
		case err != nil:
			t.Fatal(err)
		default:
			_ = response.Body.Close()
			got = append(got, response.StatusCode)
		}
	}
	return got
}

const objectPath = "/apis/apps/v1/namespaces/shop/statefulsets/a"

func TestRoundTrip_ActsOnMatchingRequestsOnly(t *testing.T) {
	for _, test := range []struct {
		name string
		rule rules.Rule
		want []int
	}{
		{"every request", rules.Rule{}, []int{500, 500, 500}},
		{"the same verb", rules.Rule{Match: rules.Match{Verbs: []string{"create", "patch"}}}, []int{500, 500, 500}},
		{"another verb", rules.Rule{Match: rules.Match{Verbs: []string{"create"}}}, []int{200, 200, 200}},
		{"another resource", rules.Rule{Match: rules.Match{Resources: []string{"services"}}}, []int{200, 200, 200}},
		{"another namespace", rules.Rule{Match: rules.Match{Namespace: "bank"}}, []int{200, 200, 200}},
		{"another name", rules.Rule{Match: rules.Match{Name: "b"}}, []int{200, 200, 200}},
		{"the second and later", rules.Rule{From: 2}, []int{200, 500, 500}},
		{"one only", rules.Rule{Count: 1}, []int{500, 200, 200}},
		{"the second only", rules.Rule{From: 2, Count: 1}, []int{200, 500, 200}},
	} {
		transport := rules.New(&server{}, 1)
		test.rule.Action.Code = http.StatusInternalServerError
		transport.Set(test.rule)
		if got := codes(t, transport, http.MethodPatch, objectPath, 3); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestSet_KeepsTheCountersOfUnchangedRules(t *testing.T) {
	transport := rules.New(&server{}, 1)
	few := rules.Rule{Count: 3, Action: rules.Action{Code: http.StatusInternalServerError}}
	other := rules.Rule{Match: rules.Match{Name: "b"}, Action: rules.Action{Code: http.StatusConflict}}
	transport.Set(few)
	got := codes(t, transport, http.MethodPatch, objectPath, 2)
	transport.Set(other, few)
	got = append(got, codes(t, transport, http.MethodPatch, objectPath, 2)...)
	transport.Set(other)
	transport.Set(other, few, few)
	got = append(got, codes(t, transport, http.MethodPatch, objectPath, 7)...)
	if want := []int{500, 500, 500, 200, 500, 500, 500, 500, 500, 500, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: three in all, then three for each of the two new rules", got, want)
	}
}

func TestRoundTrip_ActsOnProbesOnlyWithNonResource(t *testing.T) {
	transport := rules.New(&server{}, 1)
	rule := rules.Rule{Action: rules.Action{Code: http.StatusInternalServerError}}
	transport.Set(rule)
	if got := codes(t, transport, http.MethodGet, "/readyz", 1); got[0] != http.StatusOK {
		t.Errorf("a probe got %d", got[0])
	}
	rule.Match.NonResource = true
	transport.Set(rule)
	if got := codes(t, transport, http.MethodGet, "/readyz", 1); got[0] != http.StatusInternalServerError {
		t.Errorf("a probe got %d although NonResource is set", got[0])
	}
}

func TestRoundTrip_SendsARequestWhoseResponseIsLost(t *testing.T) {
	target := &server{}
	transport := rules.New(target, 1)
	transport.Set(rules.Rule{Action: rules.Action{LoseResponse: true}, Count: 2})
	if got := codes(t, transport, http.MethodPost, "/api/v1/namespaces/shop/services", 3); !slices.Equal(got, []int{0, 0, 200}) {
		t.Errorf("responses are %v", got)
	}
	if len(target.reached) != 3 {
		t.Errorf("%d requests reached the server", len(target.reached))
	}
	if acted := transport.Acted(); !slices.Equal(acted, []int{2}) {
		t.Errorf("acted on %v", acted)
	}
}

func TestRoundTrip_DoesNotSendARequestThatFails(t *testing.T) {
	target := &server{}
	transport := rules.New(target, 1)
	transport.Set(rules.Rule{Action: rules.Action{Code: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond}})
	response, err := transport.RoundTrip(httptest.NewRequest(http.MethodPatch, objectPath, strings.NewReader("body")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.Header.Get("Retry-After") != "2" || !strings.Contains(string(body), `"reason":"TooManyRequests"`) {
		t.Errorf("response is %v %s", response.Header, body)
	}
	if len(target.reached) > 0 {
		t.Error("the request reached the server")
	}
}

func TestNew_SameSeedCausesSameFaults(t *testing.T) {
	run := func(seed uint64) []int {
		transport := rules.New(&server{}, seed)
		transport.Set(rules.Rule{Rate: 0.5, Action: rules.Action{Code: http.StatusConflict}})
		return codes(t, transport, http.MethodPatch, objectPath, 200)
	}
	first := run(7)
	if !slices.Equal(first, run(7)) {
		t.Error("the same seed caused other faults")
	}
	failed := 0
	for _, code := range first {
		if code == http.StatusConflict {
			failed++
		}
	}
	if failed < 60 || failed > 140 {
		t.Errorf("%d of 200 failed at rate 0.5", failed)
	}
}

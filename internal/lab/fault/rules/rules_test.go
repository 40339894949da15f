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

func TestARequestIsReadAsAnAPIServerReadsIt(t *testing.T) {
	for _, test := range []struct {
		method, url string
		want        rules.Request
	}{
		{"GET", "/readyz", rules.Request{Verb: "get"}},
		{"GET", "/apis", rules.Request{Verb: "get"}},
		{"GET", "/api/v1/pods?watch=true&x=1", rules.Request{Verb: "watch", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/shop/pods", rules.Request{Verb: "list", Resource: "pods", Namespace: "shop"}},
		{"GET", "/api/v1/namespaces/shop", rules.Request{Verb: "get", Resource: "namespaces", Name: "shop"}},
		{"PUT", "/api/v1/namespaces/shop/finalize", rules.Request{Verb: "update", Resource: "namespaces/finalize", Name: "shop"}},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/a?dryRun=All", rules.Request{Verb: "patch", Resource: "statefulsets", Namespace: "shop", Name: "a"}},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/a/status", rules.Request{Verb: "patch", Resource: "statefulsets/status", Namespace: "shop", Name: "a"}},
		{"POST", "/apis/apps/v1/namespaces/shop/statefulsets", rules.Request{Verb: "create", Resource: "statefulsets", Namespace: "shop"}},
		{"DELETE", "/api/v1/namespaces/shop/services/a", rules.Request{Verb: "delete", Resource: "services", Namespace: "shop", Name: "a"}},
		{"DELETE", "/api/v1/namespaces/shop/services", rules.Request{Verb: "deletecollection", Resource: "services", Namespace: "shop"}},
	} {
		if got := rules.Parse(httptest.NewRequest(test.method, test.url, nil)); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.method, test.url, got, test.want)
		}
	}
}

// server counts what reaches it.
type server struct{ reached []string }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.reached = append(s.reached, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// codes are what a number of the same requests get; 0 is a lost answer.
func codes(t *testing.T, transport http.RoundTripper, method, url string, n int) []int {
	t.Helper()
	var got []int
	for range n {
		response, err := transport.RoundTrip(httptest.NewRequest(method, url, strings.NewReader("body")))
		switch {
		case errors.Is(err, rules.ErrLost):
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

const patched = "/apis/apps/v1/namespaces/shop/statefulsets/a"

func TestARuleActsOnWhatItMatchesOnly(t *testing.T) {
	for _, test := range []struct {
		name string
		rule rules.Rule
		want []int
	}{
		{"everything", rules.Rule{}, []int{500, 500, 500}},
		{"its verb", rules.Rule{Match: rules.Match{Verbs: []string{"create", "patch"}}}, []int{500, 500, 500}},
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
		if got := codes(t, transport, http.MethodPatch, patched, 3); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestAFaultThatIsUsedUpDoesNotBeginAnewBecauseAnotherOneComes(t *testing.T) {
	transport := rules.New(&server{}, 1)
	few := rules.Rule{Count: 3, Action: rules.Action{Code: http.StatusInternalServerError}}
	other := rules.Rule{Match: rules.Match{Name: "b"}, Action: rules.Action{Code: http.StatusConflict}}
	transport.Set(few)
	got := codes(t, transport, http.MethodPatch, patched, 2)
	transport.Set(other, few)
	got = append(got, codes(t, transport, http.MethodPatch, patched, 2)...)
	transport.Set(other)
	transport.Set(other, few, few)
	got = append(got, codes(t, transport, http.MethodPatch, patched, 7)...)
	if want := []int{500, 500, 500, 200, 500, 500, 500, 500, 500, 500, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: three in all, and two times three once it is undone and made anew twice", got, want)
	}
}

func TestAProbeIsSparedUnlessPathsAreMeant(t *testing.T) {
	transport := rules.New(&server{}, 1)
	rule := rules.Rule{Action: rules.Action{Code: http.StatusInternalServerError}}
	transport.Set(rule)
	if got := codes(t, transport, http.MethodGet, "/readyz", 1); got[0] != http.StatusOK {
		t.Errorf("a probe got %d", got[0])
	}
	rule.Match.Paths = true
	transport.Set(rule)
	if got := codes(t, transport, http.MethodGet, "/readyz", 1); got[0] != http.StatusInternalServerError {
		t.Errorf("a probe got %d though paths match", got[0])
	}
}

func TestALostAnswerIsOfARequestThatWasCarriedOut(t *testing.T) {
	behind := &server{}
	transport := rules.New(behind, 1)
	transport.Set(rules.Rule{Action: rules.Action{Lose: true}, Count: 2})
	if got := codes(t, transport, http.MethodPost, "/api/v1/namespaces/shop/services", 3); !slices.Equal(got, []int{0, 0, 200}) {
		t.Errorf("answers are %v", got)
	}
	if len(behind.reached) != 3 {
		t.Errorf("%d requests reached the server", len(behind.reached))
	}
	if acted := transport.Acted(); !slices.Equal(acted, []int{2}) {
		t.Errorf("acted on %v", acted)
	}
}

func TestARequestThatIsRefusedDoesNotReachTheServer(t *testing.T) {
	behind := &server{}
	transport := rules.New(behind, 1)
	transport.Set(rules.Rule{Action: rules.Action{Code: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond}})
	response, err := transport.RoundTrip(httptest.NewRequest(http.MethodPatch, patched, strings.NewReader("body")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.Header.Get("Retry-After") != "2" || !strings.Contains(string(body), `"reason":"TooManyRequests"`) {
		t.Errorf("answer is %v %s", response.Header, body)
	}
	if len(behind.reached) > 0 {
		t.Error("it reached the server")
	}
}

func TestTheSameSeedMakesTheSameFaults(t *testing.T) {
	run := func(seed uint64) []int {
		transport := rules.New(&server{}, seed)
		transport.Set(rules.Rule{Rate: 0.5, Action: rules.Action{Code: http.StatusConflict}})
		return codes(t, transport, http.MethodPatch, patched, 200)
	}
	first := run(7)
	if !slices.Equal(first, run(7)) {
		t.Error("the same seed made other faults")
	}
	failed := 0
	for _, code := range first {
		if code == http.StatusConflict {
			failed++
		}
	}
	if failed < 60 || failed > 140 {
		t.Errorf("%d of 200 failed at a rate of a half", failed)
	}
}

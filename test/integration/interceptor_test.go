package integration

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// intercepted answers requests to members in place of their API servers, by what
// the path has.
var intercepted struct {
	mu      sync.Mutex
	answers map[string]func(*http.Request) *http.Response
}

// intercept returns requests whose path has part to answer until the test ends; a
// nil response lets the request through.
func intercept(t *testing.T, part string, answer func(*http.Request) *http.Response) {
	t.Helper()
	intercepted.mu.Lock()
	defer intercepted.mu.Unlock()
	if intercepted.answers == nil {
		intercepted.answers = map[string]func(*http.Request) *http.Response{}
	}
	intercepted.answers[part] = answer
	t.Cleanup(func() {
		intercepted.mu.Lock()
		defer intercepted.mu.Unlock()
		delete(intercepted.answers, part)
	})
}

// interceptor is the manager's way to its members.
type interceptor struct{ next http.RoundTripper }

func (i interceptor) RoundTrip(r *http.Request) (*http.Response, error) {
	intercepted.mu.Lock()
	var answer func(*http.Request) *http.Response
	for part, a := range intercepted.answers {
		if strings.Contains(r.URL.Path, part) {
			answer = a
		}
	}
	intercepted.mu.Unlock()
	if answer != nil {
		if response := answer(r); response != nil {
			response.Request = r
			return response, nil
		}
	}
	return i.next.RoundTrip(r)
}

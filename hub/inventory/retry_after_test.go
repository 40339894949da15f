package inventory

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func TestRetryAfterTransport_ReturnsRetryAfterWithoutARetry(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, contentType, after, body string
		code                           int
		says                           string
	}{
		{"as API priority and fairness does", "text/plain", "7", "Too many requests, please try again later.", 429, "asked us to try again later"},
		{"with a Status", "application/json", "7", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"slow down"}`, 429, "slow down"},
		{"as a date", "text/plain", now.Add(7 * time.Second).Format(http.TimeFormat), "", 503, "unable to handle"},
		{"an HTML page of a proxy", "text/html", "7", "<html>busy</html>", 502, "busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return retryAfterTransport{next: next, now: func() time.Time { return now }}
			})
			api, err := discovery.NewDiscoveryClientForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			err = api.RESTClient().Patch("application/apply-patch+yaml").AbsPath("/x").Body([]byte("{}")).Do(t.Context()).Error()
			seconds, _ := apierrors.SuggestsClientDelay(err)
			if seconds != 7 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("retry after %d s, with %q", seconds, err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("the server got %d requests", n)
			}
		})
	}
}

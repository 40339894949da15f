package inventory

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// retryAfterTransport moves a Retry-After header into the Status of the response.
// client-go would otherwise sleep that long and retry, up to ten times, inside the
// request: a worker would be blocked, and would get a deadline error instead of a 429.
type retryAfterTransport struct {
	next http.RoundTripper
	now  func() time.Time
}

// maxBody bounds what is read of a response that is no Status.
const maxBody = 16 << 10

// RoundTrip sends a request.
func (p retryAfterTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, err
	}
	seconds, found := retryAfter(response.Header.Get("Retry-After"), p.now())
	if !found {
		return response, nil
	}
	response.Header.Del("Retry-After")
	if strings.Contains(response.Header.Get("Content-Type"), "protobuf") {
		// The Status of an API server already has the value.
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(withRetryAfter(response.StatusCode, request.Method, body, seconds))
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	response.ContentLength = int64(len(answer))
	response.Header.Set("Content-Length", strconv.Itoa(len(answer)))
	response.Header.Set("Content-Type", "application/json")
	response.Header.Del("Content-Encoding")
	return response, nil
}

// retryAfter parses both forms of the header.
func retryAfter(header string, now time.Time) (seconds int32, found bool) {
	if n, err := strconv.ParseUint(header, 10, 31); err == nil {
		return int32(n), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return int32(min(max(0, at.Sub(now)), 24*time.Hour) / time.Second), true
	}
	return 0, false
}

// withRetryAfter returns the Status in a response body, or a new one from it.
func withRetryAfter(code int, method string, body []byte, seconds int32) metav1.Status {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = apierrors.NewGenericServerResponse(code, method, schema.GroupResource{}, "", strings.TrimSpace(string(body)), 0, true).ErrStatus
		status.Kind, status.APIVersion = "Status", "v1"
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	if status.Details.RetryAfterSeconds == 0 {
		status.Details.RetryAfterSeconds = seconds
	}
	return status
}

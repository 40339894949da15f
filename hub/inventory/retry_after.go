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

// patient hands a server's Retry-After on as part of the answer. client-go would
// sleep that long and try again, up to ten times, inside the request: the worker
// would be held, and what comes out in the end is a deadline instead of a 429.
type patient struct {
	next http.RoundTripper
	now  func() time.Time
}

// mostOfAnAnswer bounds what is read of an answer that is no Status.
const mostOfAnAnswer = 16 << 10

func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, err
	}
	seconds, asked := retryAfter(response.Header.Get("Retry-After"), p.now())
	if !asked {
		return response, nil
	}
	response.Header.Del("Retry-After")
	if strings.Contains(response.Header.Get("Content-Type"), "protobuf") {
		// An API server's own Status, which holds the same.
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOfAnAnswer))
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

// retryAfter reads both forms of the header.
func retryAfter(header string, now time.Time) (seconds int32, asked bool) {
	if n, err := strconv.ParseUint(header, 10, 31); err == nil {
		return int32(n), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return int32(min(max(0, at.Sub(now)), 24*time.Hour) / time.Second), true
	}
	return 0, false
}

// withRetryAfter is the Status that an answer holds, or one made of it.
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

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Process is one life of the manager: what its transports share.
type Process struct {
	Board *Board
	dead  atomic.Bool
}

// Kill makes every further request of the process fail before it is sent.
func (p *Process) Kill() { p.dead.Store(true) }

// Transport goes around a transport to a server.
func (p *Process) Transport(server string, next http.RoundTripper) http.RoundTripper {
	return &transport{process: p, server: server, next: next}
}

type transport struct {
	process *Process
	server  string
	next    http.RoundTripper
}

// errKilled is what the rest of a process that is dead sees.
var errKilled = &net.OpError{Op: "write", Net: "tcp", Err: errors.New("the process was killed")}

// patience of a request that times out: a real one would only take longer.
const patience = 100 * time.Millisecond

// RoundTrip injects the fault that is armed for the request, if any.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.process.dead.Load() {
		drop(r)
		return nil, errKilled
	}
	r = r.Clone(r.Context())
	namespace, place, ok := Request(t.server, r)
	lie := Fault("")
	if r.URL.Query().Get("watch") == "" {
		lie = t.process.Board.lied(t.server)
	}
	trace := t.process.Board.find(namespace)
	if !ok || trace == nil {
		// Not counted; and a trace of its own takes what the fault does to it.
		trace = &Trace{}
	}
	entry, fault, dead := trace.meet(place)
	if dead {
		drop(r)
		return nil, errKilled
	}
	if fault == "" {
		fault = lie
	}
	if fault != "" && fault != Lost && fault != KillAfter {
		drop(r)
		return instead(r, fault, place)
	}
	begun := time.Now()
	trace.sent()
	response, err := t.next.RoundTrip(r)
	if err != nil {
		trace.carried(entry, place, 0, time.Since(begun))
		return nil, err
	}
	trace.carried(entry, place, response.StatusCode, time.Since(begun))
	switch fault {
	case Lost:
		drain(response)
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case KillAfter:
		drain(response)
		trace.kill(t.process)
		return nil, errKilled
	}
	return response, nil
}

// CloseIdleConnections reaches the transport behind, which client-go looks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func drop(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

func drain(response *http.Response) {
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// instead is the answer to a request that is not sent.
func instead(r *http.Request, f Fault, p Place) (*http.Response, error) {
	switch f {
	case Refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case Reset:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case Timeout:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case Conflict:
		return answer(r, http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", p.Kind, p.Name), p, 0)
	case TooMany:
		return answer(r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", p, 1)
	case Internal:
		return answer(r, http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: request timed out", p, 0)
	case Unavailable:
		return answer(r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request", p, 0)
	default:
		return answer(r, http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s %q is forbidden: the account cannot %s it in the namespace", p.Kind, p.Name, p.Verb), p, 0)
	}
}

// answer is what an API server says.
func answer(r *http.Request, code int32, reason metav1.StatusReason, message string, p Place, retry int32) (*http.Response, error) {
	body, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Name: p.Name, Kind: p.Kind, RetryAfterSeconds: retry},
	})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if retry > 0 {
		header.Set("Retry-After", fmt.Sprint(retry))
	}
	return &http.Response{Status: http.StatusText(int(code)), StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

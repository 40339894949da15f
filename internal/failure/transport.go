package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	renewCredential = "renew the credential of the member: reconcile-lab join NAME --kubeconfig FILE"
	checkAddress    = "check the server and proxy-url in the member's kubeconfig; reconcile-lab join NAME --kubeconfig FILE replaces it"
	checkNetwork    = "check the member's API server and the network to it: kubectl --kubeconfig FILE get --raw /readyz"

	connectionFailed    = "the connection to the member's API server failed"
	notAPIServerMessage = "the address of the member is not a Kubernetes API server: another server responds"
)

// rateLimited is the text of client-go for a request that the rate limiter delays until
// its deadline. The error has no type of its own.
const rateLimited = "client rate limiter Wait returned an error"

// transport classifies an error of a request that no API server answered.
func transport(err error) (Failure, bool) {
	f := Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable, Hint: checkNetwork}
	text := err.Error()
	var dns *net.DNSError
	switch {
	case strings.Contains(text, rateLimited) && strings.Contains(text, "error from a previous attempt: "):
		// client-go retried a connection that closes until the deadline. Only the text of
		// the attempts remains.
		f.Message = connectionFailed
	case strings.Contains(text, rateLimited):
		// No request was sent: the rate limiter of the hub delayed it beyond the deadline.
		return Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError,
			Message: "the hub did not send the request in time: its rate limit for this member is reached"}, true
	case strings.Contains(text, "getting credentials: "):
		f.Reason, f.Hint = v1alpha1.ReasonUnauthorized, renewCredential
		f.Message = "the hub cannot get a credential for the member: " + stable(withoutURL(err))
	case errors.As(err, &dns):
		f.Message = "the host name of the member's API server cannot be resolved: " + dns.Name
	case isProxy(err):
		f.Message, f.Hint = "the proxy between the hub and the member's API server does not forward the request", checkAddress
	case isClientCertificate(text):
		f.Reason, f.Hint = v1alpha1.ReasonUnauthorized, renewCredential
		f.Message = "the member's API server does not accept the client certificate: " + stable(withoutURL(err))
	case isTLS(err):
		f.Message = "the TLS connection to the member's API server failed: " + stable(withoutURL(err))
		f.Hint = renewCredential
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isTimeout(err):
		f.Message = "the member's API server did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message = "the member's API server refuses connections"
	case isConnectionError(err):
		f.Message = connectionFailed
	case isNotAPIServer(err):
		f.Message, f.Hint = notAPIServerMessage, checkAddress
	default:
		return Failure{}, false
	}
	return f, true
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !isStatus(err)
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func isProxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "proxyconnect" || op.Op == "socks connect")
}

// isConnectionError reports whether a connection failed or was closed. HTTP/2 has error types
// in two packages, and one does not export them, so only the text identifies them.
func isConnectionError(err error) bool {
	var (
		op   *net.OpError
		link *url.Error
	)
	if errors.As(err, &op) || errors.As(err, &link) {
		return true
	}
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, http.ErrServerClosed, http.ErrHandlerTimeout,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, target) {
			return true
		}
	}
	return !isStatus(err) && containsAny(err.Error(), "http2: ", "stream error: ", "connection error: ", "server closed idle connection",
		"use of closed network connection", "transport connection broken", "reading response body", "malformed HTTP ")
}

// isNotAPIServer reports whether no API server sends such a response, for example an HTML
// page.
func isNotAPIServer(err error) bool {
	var syntax *json.SyntaxError
	return !isStatus(err) && (errors.As(err, &syntax) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) ||
		containsAny(err.Error(), "couldn't get version/kind; json parse error", "yaml: ", "invalid character '", "unexpected end of JSON input") ||
		strings.Contains(err.Error(), "serializer for ") && strings.Contains(err.Error(), "doesn't exist"))
}

// isClientCertificate reports whether a TLS alert refuses the client certificate. crypto/tls
// does not export the type of the alerts.
func isClientCertificate(text string) bool {
	return strings.Contains(text, "remote error: tls: ") && containsAny(text, "bad certificate", "unsupported certificate", "revoked certificate",
		"expired certificate", "unknown certificate", "access denied", "certificate required")
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		alert        tls.AlertError
		record       tls.RecordHeaderError
		ech          *tls.ECHRejectionError

		authority  x509.UnknownAuthorityError
		invalid    x509.CertificateInvalidError
		hostname   x509.HostnameError
		roots      x509.SystemRootsError
		algorithm  x509.InsecureAlgorithmError
		constraint x509.ConstraintViolationError
		extension  x509.UnhandledCriticalExtension
	)
	for _, target := range []any{&verification, &alert, &record, &ech, &authority, &invalid, &hostname, &roots, &algorithm, &constraint, &extension} {
		if errors.As(err, target) {
			return true
		}
	}
	return errors.Is(err, x509.ErrUnsupportedAlgorithm) || errors.Is(err, http.ErrSchemeMismatch) ||
		!isStatus(err) && containsAny(err.Error(), "tls: ", "x509: ")
}

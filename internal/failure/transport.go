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
	renewCredential = "renew the member's credential: reconcile-lab join NAME --kubeconfig FILE"
	checkAddress    = "check the address in the member's kubeconfig, and any proxy on the way to it"
	checkNetwork    = "check the member's API server and the network to it"
)

// ownLimit is client-go's word for a request that waited for its limit of requests
// until the deadline; no type tells it from others.
const ownLimit = "client rate limiter Wait returned an error"

// transport finds what kept a request from being answered by an API server.
func transport(err error) (Failure, bool) {
	f := Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable, Hint: checkNetwork}
	text := err.Error()
	var dns *net.DNSError
	switch {
	case strings.Contains(text, ownLimit) && strings.Contains(text, "error from a previous attempt: "):
		// client-go tried a connection that breaks until our deadline came. Of the tries
		// only the text is left.
		f.Message = "the connection to the member's API server broke"
	case strings.Contains(text, ownLimit):
		// Our own limit of requests, and our own deadline: the member was not asked.
		return Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError,
			Message: "the request waited too long for the hub's own limit of requests to this member"}, true
	case strings.Contains(text, "getting credentials: "):
		f.Reason, f.Hint = v1alpha1.ReasonUnauthorized, renewCredential
		f.Message = "the hub cannot get a credential for the member: " + stable(withoutAddress(err))
	case errors.As(err, &dns):
		f.Message = "the name of the member's API server cannot be resolved: " + dns.Name
	case viaProxy(err):
		f.Message, f.Hint = "the proxy on the way to the member's API server does not let the request through", checkAddress
	case isOurCertificate(text):
		f.Reason, f.Hint = v1alpha1.ReasonUnauthorized, renewCredential
		f.Message = "the member's API server does not accept the client certificate: " + stable(withoutAddress(err))
	case isTLS(err):
		f.Message = "the member's API server and the credential do not trust each other: " + stable(withoutAddress(err))
		f.Hint = renewCredential
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isTimeout(err):
		f.Message = "the member's API server did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message = "the member's API server refuses connections"
	case isBroken(err):
		f.Message = "the connection to the member's API server broke"
	case isNoAnswer(err):
		f.Message, f.Hint = "what answers in place of the member's API server is none", checkAddress
	default:
		return Failure{}, false
	}
	return f, true
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !isAnswer(err)
}

func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func viaProxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "proxyconnect" || op.Op == "socks connect")
}

// isBroken finds connections that ended. Those of HTTP/2 have types of their own in
// two packages, of which one exports none, so they are known by their words.
func isBroken(err error) bool {
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
	return !isAnswer(err) && containsAny(err.Error(), "http2: ", "stream error: ", "connection error: ", "server closed idle connection",
		"use of closed network connection", "transport connection broken", "reading response body", "malformed HTTP ")
}

// isNoAnswer finds answers that no API server gives: a page for people, or half of
// one.
func isNoAnswer(err error) bool {
	var syntax *json.SyntaxError
	return !isAnswer(err) && (errors.As(err, &syntax) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) ||
		containsAny(err.Error(), "couldn't get version/kind; json parse error", "yaml: ", "invalid character '", "unexpected end of JSON input") ||
		strings.Contains(err.Error(), "serializer for ") && strings.Contains(err.Error(), "doesn't exist"))
}

// isOurCertificate finds the alerts by which a server refuses a client's
// certificate. crypto/tls does not export their type.
func isOurCertificate(text string) bool {
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
		!isAnswer(err) && containsAny(err.Error(), "tls: ", "x509: ")
}

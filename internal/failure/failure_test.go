package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var (
	sets = schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	kind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

func invalidField(e *field.Error) error {
	return apierrors.NewInvalid(kind, "sessions", field.ErrorList{e})
}

func withCause(err *apierrors.StatusError, cause metav1.CauseType, fieldPath string) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause, Field: fieldPath, Message: `conflict with "kubectl-edit"`})
	return err
}

func refused(port int) error {
	return &url.Error{Op: "Patch", URL: fmt.Sprintf("https://127.0.0.1:%d/apis", port), Err: &net.OpError{Op: "dial", Net: "tcp",
		Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
}

func reset(port int) error {
	return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port},
		Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 6443}, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

func TestOf_ReturnsClassReasonAndText(t *testing.T) {
	link := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://member-1:6443/readyz", Err: err}
	}
	for _, c := range []struct {
		name   string
		err    error
		class  v1alpha1.ErrorClass
		reason string
		// text is part of the message or hint.
		text string
	}{
		// A status of an API server.
		{"400", apierrors.NewBadRequest("field x is unknown"), v1alpha1.ClassInvalid, v1alpha1.ReasonRejected, "field x is unknown"},
		{"401", apierrors.NewUnauthorized("no"), v1alpha1.ClassUnreachable, v1alpha1.ReasonUnauthorized, "reconcile-lab join"},
		{"403", apierrors.NewForbidden(sets, "sessions", errors.New("no right")), v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden, "no right"},
		{"403 of the authorizer", apierrors.NewForbidden(sets, "sessions", errors.New(`User "hub" cannot patch resource "statefulsets" in API group "apps" in the namespace "exceeded quota: "`)),
			v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden, "reconcile-lab join"},
		{"403 for a quota", apierrors.NewForbidden(sets, "sessions", errors.New("exceeded quota: small")), v1alpha1.ClassBlocked, v1alpha1.ReasonQuotaExceeded, "ResourceQuota"},
		{"403 in a terminating namespace", withCause(apierrors.NewForbidden(sets, "sessions", errors.New("being terminated")), "NamespaceTerminating", "metadata.namespace"),
			v1alpha1.ClassBlocked, v1alpha1.ReasonNamespaceTerminating, "wait until"},
		{"404 of the namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), v1alpha1.ClassBlocked, v1alpha1.ReasonNamespaceMissing, "createNamespace: true"},
		{"404 of the kind", apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", sets, "sessions", "", 0, true), v1alpha1.ClassBlocked, v1alpha1.ReasonKindMissing, "does not serve"},
		{"404 of one object", apierrors.NewNotFound(sets, "sessions"), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "not found"},
		{"405", apierrors.NewMethodNotSupported(sets, "patch"), v1alpha1.ClassBlocked, v1alpha1.ReasonKindMissing, "1.22"},
		{"406", apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "PATCH", sets, "sessions", "", 0, true), v1alpha1.ClassBlocked, v1alpha1.ReasonKindMissing, "1.22"},
		{"409 of a create", apierrors.NewAlreadyExists(sets, "sessions"), v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother, "rename"},
		{"409 of a create while the old object terminates", apierrors.NewGenericServerResponse(http.StatusConflict, "POST", sets, "sessions", "", 1, false), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "conflict"},
		{"409 of a version", apierrors.NewConflict(sets, "sessions", errors.New("changed")), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "changed"},
		{"409 of a field manager", withCause(apierrors.NewApplyConflict(nil, "conflict"), metav1.CauseTypeFieldManagerConflict, ".spec.replicas"), v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother, "conflict"},
		{"410", apierrors.NewResourceExpired("too old"), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "too old"},
		{"413", apierrors.NewRequestEntityTooLargeError("big"), v1alpha1.ClassInvalid, v1alpha1.ReasonRejected, "big"},
		{"415", apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "PATCH", sets, "sessions", "", 0, true), v1alpha1.ClassBlocked, v1alpha1.ReasonKindMissing, "1.22"},
		{"422", invalidField(field.Invalid(field.NewPath("spec", "replicas"), -1, "must be non-negative")), v1alpha1.ClassInvalid, v1alpha1.ReasonRejected, "spec.replicas"},
		{"422 of an immutable Service", invalidField(field.Invalid(field.NewPath("spec", "clusterIPs"), "x", "may not change once set")), v1alpha1.ClassBlocked, v1alpha1.ReasonImmutableField, "revert the field"},
		{"422 of an immutable selector", invalidField(field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")), v1alpha1.ClassBlocked, v1alpha1.ReasonImmutableField, "revert the field"},
		{"422 of a StatefulSet's fields", invalidField(field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")),
			v1alpha1.ClassBlocked, v1alpha1.ReasonImmutableField, "spec"},
		{"429", apierrors.NewTooManyRequests("slow down", 7), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "slow down"},
		{"429 of an eviction", apierrors.NewTooManyRequestsError("slow down"), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "slow down"},
		{"500", apierrors.NewInternalError(errors.New("etcd")), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "etcd"},
		{"500 with RetryAfter", apierrors.NewServerTimeout(sets, "patch", 3), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "statefulsets"},
		{"503", apierrors.NewServiceUnavailable("starting"), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "starting"},
		{"504", apierrors.NewTimeoutError("slow webhook", 2), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "slow webhook"},
		{"a wrapped answer", fmt.Errorf("while applying: %w", apierrors.NewUnauthorized("no")), v1alpha1.ClassUnreachable, v1alpha1.ReasonUnauthorized, ""},

		// No response.
		{"a deadline", context.DeadlineExceeded, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "did not answer in time"},
		{"a deadline in a request", link(context.DeadlineExceeded), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "did not answer in time"},
		{"a member that left", context.Canceled, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, ""},
		{"a socket's deadline", link(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "did not answer in time"},
		{"a closed port", refused(6443), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "refuses connections"},
		{"a reset connection", link(reset(40000)), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "the connection to the member's API server failed"},
		{"no route", link(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "the connection to the member's API server failed"},
		{"an unknown name", link(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "member-1.example", IsNotFound: true}}),
			v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "member-1.example"},
		{"a lost response", link(io.EOF), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "the connection to the member's API server failed"},
		{"half a response", io.ErrUnexpectedEOF, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "the connection to the member's API server failed"},
		{"an unknown authority", link(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "unknown authority"},
		{"an unknown authority by itself", x509.UnknownAuthorityError{}, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "unknown authority"},
		{"an expired certificate", link(x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-11-30T03:00:00Z is after 2026-11-29T00:00:00Z"}),
			v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "expired"},
		{"another host's certificate", link(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "member-1"}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "TLS connection"},
		{"an alert", link(tls.AlertError(42)), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "TLS connection"},
		{"no TLS at all", link(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "TLS handshake"},

		// An error of the client.
		{"an alert of another kind", link(&net.OpError{Op: "remote error", Err: tls.AlertError(40)}), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "TLS connection"},
		{"plain HTTP where TLS is spoken", link(http.ErrSchemeMismatch), v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable, "TLS connection"},
		{"a kind without a mapping", &meta.NoKindMatchError{GroupKind: kind}, v1alpha1.ClassBlocked, v1alpha1.ReasonKindMissing, "does not serve"},
		{"anything else", errors.New("strange"), v1alpha1.ClassTransient, v1alpha1.ReasonMemberError, "apply StatefulSet/sessions: strange"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Of(c.err, "apply", "StatefulSet/sessions")
			if outcome := f.Outcome(); outcome.SelfResolving != (c.reason == v1alpha1.ReasonNamespaceTerminating) {
				t.Errorf("self-resolving is %t for %s", outcome.SelfResolving, outcome.Reason)
			}
			if f.Class != c.class || f.Reason != c.reason {
				t.Errorf("%s/%s, want %s/%s (%s)", f.Class, f.Reason, c.class, c.reason, f)
			}
			if !strings.Contains(f.Error(), c.text) || f.Message == "" || strings.HasSuffix(f.Message, ": ") {
				t.Errorf("error %q, want one that contains %q", f, c.text)
			}
			if f.Class != v1alpha1.ClassTransient && f.Hint == "" {
				t.Errorf("failure %q has no hint", f)
			}
			if !errors.Is(f, c.err) {
				t.Error("errors.Is does not find the cause")
			}
		})
	}
}

func TestOf_ReturnsNilForNoError(t *testing.T) {
	if f := Of(nil, "apply", "x"); f != nil {
		t.Errorf("got %v", f)
	}
}

func TestOf_ReturnsWrappedFailureUnchanged(t *testing.T) {
	known := &Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother, Message: "m"}
	if got := Of(fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", known)), "apply", "x"); got != known {
		t.Errorf("got %v", got)
	}
}

func TestOf_ReturnsRetryAfterOfServer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want time.Duration
	}{
		{apierrors.NewTooManyRequests("slow down", 7), 7 * time.Second},
		{apierrors.NewServerTimeout(sets, "patch", 3), 3 * time.Second},
		{apierrors.NewInternalError(errors.New("x")), 0},
	} {
		if got := Of(c.err, "apply", "x").RetryAfter; got != c.want {
			t.Errorf("%v: retry after %s, want %s", c.err, got, c.want)
		}
	}
}

// A message that differs between two retries would cause a write to the hub with each retry.
func TestOutcome_IsEqualForTheSameCause(t *testing.T) {
	expired := func(now string) error {
		return x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time " + now + " is after 2026-11-29T00:00:00Z"}
	}
	proxied := func(port string) error {
		return apierrors.NewInternalError(errors.New("failed calling webhook: dial tcp " + port + ": connect: connection refused"))
	}
	for _, c := range []struct {
		name         string
		one, another error
	}{
		{"refused on two ports", refused(40001), refused(40002)},
		{"reset on two sockets", reset(40001), reset(40002)},
		{"expired at two times", &url.Error{Op: "Get", URL: "https://a", Err: expired("2026-11-30T03:00:00Z")}, &url.Error{Op: "Get", URL: "https://a", Err: expired("2026-11-30T04:00:01Z")}},
		{"a webhook on two sockets", proxied("10.0.0.1:9443"), proxied("10.0.0.7:9444")},
		{"a webhook on two IPv6 sockets", proxied("[fd00::1]:9443"), proxied("[fd00::2]:9443")},
		{"wrapped over two lines", errors.New("a\n  b"), errors.New("a b")},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, another := Of(c.one, "apply", "x").Outcome(), Of(c.another, "apply", "x").Outcome()
			if diff := cmp.Diff(one, another); diff != "" {
				t.Errorf("outcomes differ:\n%s", diff)
			}
		})
	}
}

// JSON replaces an incomplete character by U+FFFD. The saved status would never equal the
// computed one, and each reconcile would write it.
func TestOf_TruncatesMessageBetweenCharacters(t *testing.T) {
	for pad := range 4 {
		f := Of(errors.New(strings.Repeat("x", pad)+strings.Repeat("界", 500)), "apply", "x")
		if !utf8.ValidString(f.Message) {
			t.Errorf("message ends with %q", f.Message[len(f.Message)-8:])
		}
		if len(f.Message) > maxMessage+50 {
			t.Errorf("message has %d bytes", len(f.Message))
		}
	}
}

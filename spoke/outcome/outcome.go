package outcome

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Failure is an error with its class. It is an error itself, so that it travels
// through the stages and is found again with errors.As.
type Failure struct {
	Class   v1alpha1.ErrorClass
	Reason  string
	Message string
	Hint    string
	// RetryAfter is what the server asked for, or 0.
	RetryAfter time.Duration
	// Err is the cause, or nil where a check of ours failed.
	Err error
}

func (f *Failure) Error() string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (" + f.Hint + ")"
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Outcome as it stands in a status.
func (f *Failure) Outcome() v1alpha1.Outcome {
	return v1alpha1.Outcome{Class: f.Class, Reason: f.Reason, Message: f.Message, Hint: f.Hint}
}

// Of classifies an error met while doing something to an object of a member,
// such as ("apply", "StatefulSet/sessions"). It gives nil for nil, and a Failure
// that is already in the chain unchanged.
func Of(err error, doing, object string) *Failure {
	if err == nil {
		return nil
	}
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	f := classify(err)
	f.Err = err
	if f.Message == "" {
		f.Message = fmt.Sprintf("%s %s: %s", doing, object, stable(err))
	}
	return &f
}

func classify(err error) Failure {
	if f, ok := transport(err); ok {
		return f
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return answered(err, status.Status())
	}
	if meta.IsNoMatchError(err) {
		return kindMissing()
	}
	return transient()
}

// answered sorts what an API server said itself.
func answered(err error, s metav1.Status) Failure {
	switch {
	case apierrors.IsUnauthorized(err):
		return Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonUnauthorized,
			Message: "the member's API server does not accept the credential",
			Hint:    "renew the member's credential: reconcile-lab join NAME --kubeconfig FILE"}
	case apierrors.IsForbidden(err):
		return forbidden(err, s)
	case apierrors.IsNotFound(err):
		return notFound(s)
	case apierrors.IsInvalid(err) && replaced(s):
		return transient()
	case apierrors.IsInvalid(err) && immutable(s):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonImmutableField,
			Hint: "put the field back, or delete the CacheCluster and create it anew"}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonRejected,
			Hint: "change the field that the message names in the CacheCluster's spec"}
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err) && ownedByAnother(s):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother,
			Hint: "rename the CacheCluster, or delete the object in the member"}
	case apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
			Hint: "the member's Kubernetes is too old for server-side apply: 1.22 or later is needed"}
	}
	f := transient()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		f.RetryAfter = time.Duration(seconds) * time.Second
	}
	return f
}

func forbidden(err error, s metav1.Status) Failure {
	switch {
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceTerminating,
			Hint: "wait until the namespace is gone; it is then created anew where placement.createNamespace allows"}
	case strings.Contains(s.Message, "exceeded quota"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonQuotaExceeded,
			Hint: "raise the member's ResourceQuota, or lower memory or replicas"}
	default:
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonForbidden,
			Hint: "give the hub's account in the member the right that the message names: reconcile-lab join NAME --kubeconfig FILE sets all of them"}
	}
}

func notFound(s metav1.Status) Failure {
	if s.Details != nil && s.Details.Kind == "namespaces" {
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceMissing,
			Hint: "create the namespace in the member, or set placement.createNamespace: true"}
	}
	return kindMissing()
}

func kindMissing() Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
		Hint: "the member's API server does not serve this kind: check its version"}
}

func transient() Failure {
	return Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError}
}

// transport finds what kept a request from being answered at all.
func transport(err error) (Failure, bool) {
	f := Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable,
		Hint: "check the member's API server and the network to it"}
	var (
		dns  *net.DNSError
		op   *net.OpError
		link *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isTimeout(err):
		f.Message = "the member's API server did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message = "the member's API server refuses connections"
	case errors.As(err, &dns):
		f.Message = "the name of the member's API server cannot be resolved: " + dns.Name
	case isTLS(err):
		f.Message = "the member's API server and the credential do not trust each other: " + stable(withoutAddress(err))
		f.Hint = "renew the member's credential: reconcile-lab join NAME --kubeconfig FILE"
	case errors.As(err, &op), errors.As(err, &link), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.Message = "the connection to the member's API server broke"
	default:
		return Failure{}, false
	}
	return f, true
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}

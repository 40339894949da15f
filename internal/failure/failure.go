package failure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Failure is a classified error. It implements error, so that errors.As finds it in a chain.
type Failure struct {
	// Class decides when the controller retries.
	Class v1alpha1.ErrorClass
	// Reason is one of the documented reasons of a member.
	Reason string
	// Message states what happened, to which object.
	Message string
	// Hint is what the user can do, with the command.
	Hint string
	// SelfResolving reports whether a failure of the class Blocked ends without anyone
	// acting.
	SelfResolving bool
	// RetryAfter is the delay that the server asks for, or 0.
	RetryAfter time.Duration
	// Err is the cause, or nil if a check of the hub failed.
	Err error
}

// Error returns the message and the hint.
func (f *Failure) Error() string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (" + f.Hint + ")"
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// IsRefusal reports whether the member refused a request and does so until someone acts.
func (f *Failure) IsRefusal() bool {
	return f.Class == v1alpha1.ClassInvalid || f.Class == v1alpha1.ClassBlocked
}

// Outcome returns the failure as a status contains it.
func (f *Failure) Outcome() v1alpha1.Outcome {
	return v1alpha1.Outcome{Class: f.Class, Reason: f.Reason, Message: f.Message, Hint: f.Hint, SelfResolving: f.SelfResolving}
}

// Of classifies the error of an action on an object of a member, such as ("apply",
// "StatefulSet/sessions"). It returns nil for nil, and a Failure in the chain unchanged. Of
// joined errors it returns the most severe one.
func Of(err error, action, object string) *Failure {
	if err == nil {
		return nil
	}
	if parts := joined(err); len(parts) > 0 {
		return mostSevere(parts, action, object)
	}
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	f := classify(err)
	f.Err = err
	if f.Message == "" {
		f.Message = fmt.Sprintf("%s %s: %s", action, object, stable(err))
	}
	return &f
}

// severity orders the classes: those that need a user to act come first.
var severity = []v1alpha1.ErrorClass{v1alpha1.ClassBlocked, v1alpha1.ClassInvalid, v1alpha1.ClassConflict, v1alpha1.ClassUnreachable, v1alpha1.ClassTransient}

// mostSevere returns the failure of the most severe error, the first one of the same class,
// with the longest RetryAfter of all of them.
func mostSevere(parts []error, action, object string) *Failure {
	var worst *Failure
	wait := time.Duration(0)
	for _, part := range parts {
		f := Of(part, action, object)
		if f == nil {
			continue
		}
		wait = max(wait, f.RetryAfter)
		if worst == nil || slices.Index(severity, f.Class) < slices.Index(severity, worst.Class) {
			worst = f
		}
	}
	if worst == nil || worst.RetryAfter == wait {
		return worst
	}
	delayed := *worst
	delayed.RetryAfter = wait
	return &delayed
}

// joined returns the errors that an error of errors.Join, of two %w or of apimachinery's
// Aggregate contains. errors.As finds only the first one that matches, or none.
func joined(err error) []error {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // this walks the chain itself
		case *Failure:
			return nil
		case interface{ Unwrap() []error }:
			return e.Unwrap()
		case interface{ Errors() []error }:
			return e.Errors()
		}
		err = errors.Unwrap(err)
	}
	return nil
}

func classify(err error) Failure {
	if f, ok := transport(err); ok {
		return f
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fromStatus(status.Status())
	}
	if meta.IsNoMatchError(err) {
		return kindMissing()
	}
	return transient()
}

func transient() Failure {
	return Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError}
}

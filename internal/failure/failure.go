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

// Failure is an error with its class. It is an error itself, so that it travels
// through the stages and is found again with errors.As.
type Failure struct {
	Class   v1alpha1.ErrorClass
	Reason  string
	Message string
	Hint    string
	// SelfResolving reports whether a failure of the class Blocked ends without anyone
	// acting.
	SelfResolving bool
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

// Refusal says that the member answered, and will answer the same until somebody acts.
func (f *Failure) Refusal() bool {
	return f.Class == v1alpha1.ClassInvalid || f.Class == v1alpha1.ClassBlocked
}

// Outcome as it stands in a status.
func (f *Failure) Outcome() v1alpha1.Outcome {
	return v1alpha1.Outcome{Class: f.Class, Reason: f.Reason, Message: f.Message, Hint: f.Hint, SelfResolving: f.SelfResolving}
}

// Of classifies an error met while doing something to an object of a member,
// such as ("apply", "StatefulSet/sessions"). It gives nil for nil, and a Failure
// that is already in the chain unchanged; of joined errors the worst counts.
func Of(err error, doing, object string) *Failure {
	if err == nil {
		return nil
	}
	if parts := joined(err); len(parts) > 0 {
		return worstOf(parts, doing, object)
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

// severity orders the classes: first what needs somebody to act, and of that what
// is tried again by itself before what is not.
var severity = []v1alpha1.ErrorClass{v1alpha1.ClassBlocked, v1alpha1.ClassInvalid, v1alpha1.ClassConflict, v1alpha1.ClassUnreachable, v1alpha1.ClassTransient}

// worstOf joined errors; the first among equals, with the longest wait that a
// server asked for.
func worstOf(parts []error, doing, object string) *Failure {
	var worst *Failure
	wait := time.Duration(0)
	for _, part := range parts {
		f := Of(part, doing, object)
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
	patient := *worst
	patient.RetryAfter = wait
	return &patient
}

// joined gives the parts of an error that holds several, as errors.Join, two %w and
// apimachinery's Aggregate do; errors.As sees only the first that fits, or none.
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
		return answered(status.Status())
	}
	if meta.IsNoMatchError(err) {
		return kindMissing()
	}
	return transient()
}

func transient() Failure {
	return Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError}
}

package failure

import (
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// byReason sorts what an API server said itself. A test holds it against the
// reasons that apimachinery knows.
var byReason = map[metav1.StatusReason]func(metav1.Status) Failure{
	metav1.StatusReasonUnauthorized:          unauthorized,
	metav1.StatusReasonForbidden:             forbidden,
	metav1.StatusReasonNotFound:              notFound,
	metav1.StatusReasonAlreadyExists:         exists,
	metav1.StatusReasonConflict:              conflict,
	metav1.StatusReasonGone:                  passing,
	metav1.StatusReasonInvalid:               invalid,
	metav1.StatusReasonServerTimeout:         passing,
	metav1.StatusReasonStoreReadError:        passing,
	metav1.StatusReasonTimeout:               passing,
	metav1.StatusReasonTooManyRequests:       passing,
	metav1.StatusReasonBadRequest:            rejected,
	metav1.StatusReasonMethodNotAllowed:      tooOld,
	metav1.StatusReasonNotAcceptable:         tooOld,
	metav1.StatusReasonRequestEntityTooLarge: rejected,
	metav1.StatusReasonUnsupportedMediaType:  tooOld,
	metav1.StatusReasonInternalError:         internal,
	metav1.StatusReasonExpired:               passing,
	metav1.StatusReasonServiceUnavailable:    passing,
}

// byCode sorts answers without a reason that is known: of an older or newer API
// server, or of whatever stands in front of it.
var byCode = map[int32]func(metav1.Status) Failure{
	http.StatusBadRequest:                  rejected,
	http.StatusUnauthorized:                unauthorized,
	http.StatusPaymentRequired:             refusedBefore,
	http.StatusForbidden:                   forbidden,
	http.StatusNotFound:                    notFound,
	http.StatusMethodNotAllowed:            tooOld,
	http.StatusNotAcceptable:               tooOld,
	http.StatusProxyAuthRequired:           inBetween,
	http.StatusConflict:                    conflict,
	http.StatusRequestEntityTooLarge:       rejected,
	http.StatusRequestURITooLong:           rejected,
	http.StatusUnsupportedMediaType:        tooOld,
	http.StatusMisdirectedRequest:          inBetween,
	http.StatusUnprocessableEntity:         invalid,
	http.StatusUpgradeRequired:             inBetween,
	http.StatusRequestHeaderFieldsTooLarge: rejected,
	http.StatusUnavailableForLegalReasons:  refusedBefore,
}

// answered sorts an answer by its reason, or by its code where the reason says
// nothing. What admission refuses comes first: webhooks and policies choose the
// code and reason of their refusals, 401 included.
func answered(s metav1.Status) Failure {
	f, ok := Admission(s.Message)
	if !ok {
		sort, known := byReason[s.Reason]
		if !known {
			sort, known = byCode[s.Code]
		}
		switch {
		case known:
			f = sort(s)
		case s.Code > 0 && s.Code < http.StatusBadRequest:
			f = inBetween(s)
		case s.Code >= http.StatusInternalServerError:
			f = internal(s)
		default:
			f = transient()
		}
	}
	if f.Class == v1alpha1.ClassTransient && s.Details != nil {
		f.RetryAfter = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	return f
}

func passing(metav1.Status) Failure { return transient() }

func unauthorized(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonUnauthorized,
		Message: "the member's API server does not accept the credential", Hint: renewCredential}
}

func forbidden(s metav1.Status) Failure {
	switch {
	case hasCause(s, "NamespaceTerminating"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceTerminating, SelfResolving: true,
			Hint: "wait until the namespace is gone; it is then created anew where placement.createNamespace allows"}
	case foreign(s) && !lacksRight(s.Message) && markup(s):
		return inBetween(s)
	}
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonForbidden,
		Hint: "give the hub's account in the member the right that the message names: reconcile-lab join NAME --kubeconfig FILE sets all of them"}
}

func notFound(s metav1.Status) Failure {
	switch {
	case s.Details != nil && s.Details.Kind == "namespaces":
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceMissing,
			Hint: "create the namespace in the member, or set placement.createNamespace: true"}
	case s.Details != nil && s.Details.Name != "" && !foreign(s):
		// One object is not there, which was when it was read.
		return transient()
	}
	return kindMissing()
}

func exists(s metav1.Status) Failure {
	if strings.HasPrefix(s.Message, "object is being deleted") || s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		return transient()
	}
	return ofAnother()
}

func conflict(s metav1.Status) Failure {
	// As a server-side apply without force meets the fields of another manager.
	if hasCause(s, metav1.CauseTypeFieldManagerConflict) {
		return ofAnother()
	}
	return transient()
}

func ofAnother() Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother,
		Hint: "rename the CacheCluster, or delete the object in the member"}
}

func invalid(s metav1.Status) Failure {
	switch {
	case replaced(s):
		return transient()
	case immutable(s):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonImmutableField,
			Hint: "put the field back, or delete the object in the member: it is created anew"}
	}
	return rejected(s)
}

func rejected(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonRejected,
		Hint: "change, in the CacheCluster's spec, what leads to the field that the message names"}
}

func tooOld(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
		Hint: "the member's Kubernetes is too old for server-side apply: 1.22 or later is needed"}
}

func kindMissing() Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
		Hint: "the member's API server does not serve this kind: check its version"}
}

// internal errors pass, but for those that hold until somebody acts.
func internal(s metav1.Status) Failure {
	f := transient()
	switch {
	case strings.Contains(s.Message, "field not declared in schema"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
			Hint: "the member's Kubernetes does not know the field that the message names: update the member, or leave the field out with an override"}
	case strings.Contains(s.Message, "failed calling webhook"):
		f.Hint = "the webhook that the message names does not answer: check its pods and Service in the member"
	case strings.Contains(s.Message, "database space exceeded"):
		f.Hint = "the member's etcd is full: compact and defragment it, or raise its quota"
	}
	return f
}

// inBetween: something answered that is not the API server, such as a proxy.
func inBetween(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable,
		Message: "something else answers in place of the member's API server", Hint: checkAddress}
}

// refusedBefore: a provider of clusters refuses on its own account.
func refusedBefore(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonRejectedByPolicy,
		Hint: "whoever runs the member's API server refuses the request: ask there"}
}

// replaced says whether a 422 is about an object that was deleted and made anew
// since it was read: the API server takes the other UID for a changed one.
func replaced(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// immutable says whether a 422 is about a field that can't change in place. The
// API server marks it in words only.
func immutable(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return containsAny(c.Message, "field is immutable", "updates to statefulset spec for fields other than", "may not change once set", "may not be unset")
	})
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == cause })
}

// foreign says that the answer was no Status, so that client-go made one of it.
func foreign(s metav1.Status) bool { return hasCause(s, metav1.CauseTypeUnexpectedServerResponse) }

// markup says that the answer was a page for people.
func markup(s metav1.Status) bool {
	return containsAny(strings.ToLower(s.Message), "<html", "<!doctype", "<body")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

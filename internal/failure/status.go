package failure

import (
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// byReason classifies the status reasons of an API server. A test compares its keys with
// the reasons of apimachinery.
var byReason = map[metav1.StatusReason]func(metav1.Status) Failure{
	metav1.StatusReasonUnauthorized:          unauthorized,
	metav1.StatusReasonForbidden:             forbidden,
	metav1.StatusReasonNotFound:              notFound,
	metav1.StatusReasonAlreadyExists:         alreadyExists,
	metav1.StatusReasonConflict:              conflict,
	metav1.StatusReasonGone:                  retryable,
	metav1.StatusReasonInvalid:               invalid,
	metav1.StatusReasonServerTimeout:         retryable,
	metav1.StatusReasonStoreReadError:        retryable,
	metav1.StatusReasonTimeout:               retryable,
	metav1.StatusReasonTooManyRequests:       retryable,
	metav1.StatusReasonBadRequest:            rejected,
	metav1.StatusReasonMethodNotAllowed:      unsupportedVersion,
	metav1.StatusReasonNotAcceptable:         unsupportedVersion,
	metav1.StatusReasonRequestEntityTooLarge: rejected,
	metav1.StatusReasonUnsupportedMediaType:  unsupportedVersion,
	metav1.StatusReasonInternalError:         internal,
	metav1.StatusReasonExpired:               retryable,
	metav1.StatusReasonServiceUnavailable:    retryable,
}

// byCode classifies a status without a known reason, such as of another version of the API
// server or of a proxy.
var byCode = map[int32]func(metav1.Status) Failure{
	http.StatusBadRequest:                  rejected,
	http.StatusUnauthorized:                unauthorized,
	http.StatusPaymentRequired:             refusedByProvider,
	http.StatusForbidden:                   forbidden,
	http.StatusNotFound:                    notFound,
	http.StatusMethodNotAllowed:            unsupportedVersion,
	http.StatusNotAcceptable:               unsupportedVersion,
	http.StatusProxyAuthRequired:           notAPIServer,
	http.StatusConflict:                    conflict,
	http.StatusRequestEntityTooLarge:       rejected,
	http.StatusRequestURITooLong:           rejected,
	http.StatusUnsupportedMediaType:        unsupportedVersion,
	http.StatusMisdirectedRequest:          notAPIServer,
	http.StatusUnprocessableEntity:         invalid,
	http.StatusUpgradeRequired:             notAPIServer,
	http.StatusRequestHeaderFieldsTooLarge: rejected,
	http.StatusUnavailableForLegalReasons:  refusedByProvider,
}

// fromStatus classifies a status by its reason, or by its code if the reason is unknown.
// The text of a refusal by admission has precedence: webhooks and policies choose code and
// reason, even 401.
func fromStatus(s metav1.Status) Failure {
	f, ok := Admission(s.Message)
	if !ok {
		classify, known := byReason[s.Reason]
		if !known {
			classify, known = byCode[s.Code]
		}
		switch {
		case known:
			f = classify(s)
		case s.Code > 0 && s.Code < http.StatusBadRequest:
			f = notAPIServer(s)
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

func retryable(metav1.Status) Failure { return transient() }

func unauthorized(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonUnauthorized,
		Message: "the member's API server does not accept the credential", Hint: renewCredential}
}

func forbidden(s metav1.Status) Failure {
	switch {
	case hasCause(s, "NamespaceTerminating"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceTerminating, SelfResolving: true,
			Hint: "wait until the namespace is deleted (kubectl get namespace NAMESPACE in the member); the hub recreates it if spec.placement.createNamespace is true"}
	case isForeign(s) && !isAuthorizer(s.Message) && isHTML(s):
		return notAPIServer(s)
	}
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonForbidden,
		Hint: "grant the hub's account in the member the right that the message names: reconcile-lab join NAME --kubeconfig FILE grants all of them"}
}

func notFound(s metav1.Status) Failure {
	switch {
	case s.Details != nil && s.Details.Kind == "namespaces":
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNamespaceMissing,
			Hint: "set spec.placement.createNamespace: true, or create the namespace in the member: kubectl create namespace NAMESPACE"}
	case s.Details != nil && s.Details.Name != "" && !isForeign(s):
		// Another client deleted the object after the read.
		return transient()
	}
	return kindMissing()
}

func alreadyExists(s metav1.Status) Failure {
	if strings.HasPrefix(s.Message, "object is being deleted") || s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		return transient()
	}
	return notOwned()
}

func conflict(s metav1.Status) Failure {
	// A server-side apply without force conflicts with another field manager.
	if hasCause(s, metav1.CauseTypeFieldManagerConflict) {
		return notOwned()
	}
	return transient()
}

func notOwned() Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother,
		Hint: "rename the CacheCluster, or delete the object in the member: kubectl delete KIND NAME -n NAMESPACE"}
}

func invalid(s metav1.Status) Failure {
	switch {
	case isReplaced(s):
		return transient()
	case isImmutable(s):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonImmutableField,
			Hint: "revert the field, or delete the object in the member, and the hub recreates it: kubectl delete KIND NAME -n NAMESPACE"}
	}
	return rejected(s)
}

func rejected(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonRejected,
		Hint: "change the field in the CacheCluster's spec that sets the field in the message: kubectl edit cachecluster NAME -n NAMESPACE"}
}

func unsupportedVersion(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
		Hint: "upgrade the member to Kubernetes 1.22 or later, which server-side apply requires: kubectl version"}
}

func kindMissing() Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
		Hint: "upgrade the member to Kubernetes 1.22 or later: its API server does not serve this kind (kubectl api-resources)"}
}

// internal classifies an internal error: Transient, except for an unknown field.
func internal(s metav1.Status) Failure {
	f := transient()
	switch {
	case strings.Contains(s.Message, "field not declared in schema"):
		return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonKindMissing,
			Hint: "upgrade the member: its Kubernetes does not know the field that the message names (kubectl version); or remove the field for the member in spec.overrides"}
	case strings.Contains(s.Message, "failed calling webhook"):
		f.Hint = "check the pods and the Service of the webhook that the message names in the member: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml"
	case strings.Contains(s.Message, "database space exceeded"):
		f.Hint = "free space in the member's etcd (etcdctl compact, etcdctl defrag, etcdctl alarm disarm), or raise its --quota-backend-bytes"
	}
	return f
}

// notAPIServer classifies a response of another server, such as a proxy.
func notAPIServer(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonMemberUnreachable,
		Message: notAPIServerMessage, Hint: checkAddress}
}

// refusedByProvider classifies a code that only a cluster provider in front of the API
// server returns.
func refusedByProvider(metav1.Status) Failure {
	return Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonRejectedByPolicy,
		Hint: "ask the provider of the member why it refuses the request; the message has its answer"}
}

// isReplaced reports whether a 422 is about an object that was recreated after the read: the
// API server reports its UID as changed.
func isReplaced(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// isImmutable reports whether a 422 is about an immutable field. Only the text identifies it.
func isImmutable(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return containsAny(c.Message, "field is immutable", "updates to statefulset spec for fields other than", "may not change once set", "may not be unset")
	})
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == cause })
}

// isForeign reports whether the response was not a Status: client-go then creates one.
func isForeign(s metav1.Status) bool { return hasCause(s, metav1.CauseTypeUnexpectedServerResponse) }

// isHTML reports whether the response was an HTML page.
func isHTML(s metav1.Status) bool {
	return containsAny(strings.ToLower(s.Message), "<html", "<!doctype", "<body")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

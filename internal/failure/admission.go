package failure

import (
	"regexp"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// refusal is a message of an admission plugin. Plugins have no status reason of their own,
// only the text identifies them.
type refusal struct {
	text         *regexp.Regexp
	reason, hint string
}

var refusals = []refusal{
	{text: regexp.MustCompile(`exceeded quota: `), reason: v1alpha1.ReasonQuotaExceeded,
		hint: "raise the ResourceQuota in the member (kubectl edit resourcequota -n NAMESPACE), or lower memory or replicas for the member in spec.overrides"},
	{text: regexp.MustCompile(`failed quota: `), reason: v1alpha1.ReasonQuotaExceeded,
		hint: "set spec.resources as the message requires, or change the ResourceQuota in the member: kubectl edit resourcequota -n NAMESPACE"},
	{text: regexp.MustCompile(`insufficient quota to match these scopes`), reason: v1alpha1.ReasonQuotaExceeded,
		hint: "allow the priority class in a ResourceQuota of the member: kubectl edit resourcequota -n NAMESPACE"},
	{text: regexp.MustCompile(`violates PodSecurity`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "set the fields that the message names in spec.pod.securityContext, or relax the Pod Security level in the member: kubectl label --overwrite namespace NAMESPACE pod-security.kubernetes.io/enforce=LEVEL"},
	{text: regexp.MustCompile(`(minimum|maximum) \S+ usage per|max limit to request ratio per`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "change memory or resources for the member in spec.overrides, or change the LimitRange in the member: kubectl edit limitrange -n NAMESPACE"},
	{text: regexp.MustCompile(`no PriorityClass with name`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "correct spec.pod.priorityClassName, or create the PriorityClass in the member: kubectl create priorityclass NAME --value=VALUE"},
	{text: regexp.MustCompile(`error looking up service account|no API token found for service account`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "check that kube-controller-manager runs in the member, because it creates the service account that the message names: kubectl get serviceaccounts -n NAMESPACE"},
	{text: regexp.MustCompile(`admission webhook "[^"]*" denied the request`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "change the spec as the message requires, or exempt the namespace from the webhook in the member: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{text: regexp.MustCompile(`(Validating|Mutating)AdmissionPolicy '[^']*'.* denied request`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "change the spec as the message requires, or exempt the namespace from the policy in the member: kubectl get validatingadmissionpolicybindings -o yaml"},
	{text: regexp.MustCompile(`image policy webhook backend denied|unable to validate against any security context constraint|node label selector conflicts with its namespace|tolerations .*conflict with`), reason: v1alpha1.ReasonRejectedByPolicy,
		hint: "change the spec as the message requires, or change the settings of the admission plugin in the member"},
}

// Admission recognizes a refusal of admission by its text, with the class, reason and hint.
// It also reads events: the StatefulSet controller reports refused pods in them.
func Admission(message string) (Failure, bool) {
	if isAuthorizer(message) {
		return Failure{}, false
	}
	for _, r := range refusals {
		if r.text.MatchString(message) {
			return Failure{Class: v1alpha1.ClassBlocked, Reason: r.reason, Hint: r.hint}, true
		}
	}
	return Failure{}, false
}

// isAuthorizer reports whether a message is of the authorizer: only it names a User.
func isAuthorizer(message string) bool {
	return strings.Contains(message, `User "`) && strings.Contains(message, `" cannot `)
}

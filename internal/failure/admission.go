package failure

import (
	"regexp"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// A refusal is what admission in a member says no with. The plugins mark it in
// words only; none of these is a lack of rights, which alone names a User.
type refusal struct {
	words        *regexp.Regexp
	reason, hint string
}

var refusals = []refusal{
	{regexp.MustCompile(`exceeded quota: `), v1alpha1.ReasonQuotaExceeded,
		"raise the member's ResourceQuota, or lower memory or replicas with an override for it"},
	{regexp.MustCompile(`failed quota: `), v1alpha1.ReasonQuotaExceeded,
		"the member's ResourceQuota wants what the message names to be set: set resources, or change the quota"},
	{regexp.MustCompile(`insufficient quota to match these scopes`), v1alpha1.ReasonQuotaExceeded,
		"allow the priority class in a ResourceQuota of the member"},
	{regexp.MustCompile(`violates PodSecurity`), v1alpha1.ReasonRejectedByPolicy,
		"relax the namespace's Pod Security level in the member (label pod-security.kubernetes.io/enforce), or set what the message names in spec.pod.securityContext"},
	{regexp.MustCompile(`(minimum|maximum) \S+ usage per|max limit to request ratio per`), v1alpha1.ReasonRejectedByPolicy,
		"change the namespace's LimitRange in the member, or memory or resources with an override for it"},
	{regexp.MustCompile(`no PriorityClass with name`), v1alpha1.ReasonRejectedByPolicy,
		"create the PriorityClass in the member, or correct spec.pod.priorityClassName"},
	{regexp.MustCompile(`error looking up service account|no API token found for service account`), v1alpha1.ReasonRejectedByPolicy,
		"the namespace lacks the service account that the message names: check that kube-controller-manager runs in the member"},
	{regexp.MustCompile(`admission webhook "[^"]*" denied the request`), v1alpha1.ReasonRejectedByPolicy,
		"the webhook that the message names refuses it: change the spec as it says, or exempt the namespace in the member"},
	{regexp.MustCompile(`(Validating|Mutating)AdmissionPolicy '[^']*'.* denied request`), v1alpha1.ReasonRejectedByPolicy,
		"the policy that the message names refuses it: change the spec as it says, or exempt the namespace in the member"},
	{regexp.MustCompile(`image policy webhook backend denied|unable to validate against any security context constraint|node label selector conflicts with its namespace|tolerations .*conflict with`), v1alpha1.ReasonRejectedByPolicy,
		"an admission plugin of the member refuses it: change the spec as the message says, or its settings"},
}

// Admission recognizes a refusal of admission by its words, wherever they stand:
// the StatefulSet controller meets them for its pods, and tells in events.
func Admission(message string) (Failure, bool) {
	if lacksRight(message) {
		return Failure{}, false
	}
	for _, r := range refusals {
		if r.words.MatchString(message) {
			return Failure{Class: v1alpha1.ClassBlocked, Reason: r.reason, Hint: r.hint}, true
		}
	}
	return Failure{}, false
}

// lacksRight says whether a message is the authorizer's.
func lacksRight(message string) bool {
	return strings.Contains(message, `User "`) && strings.Contains(message, `" cannot `)
}

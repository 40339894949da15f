package v1alpha1

import "slices"

// TermKind is the kind of a term.
// +kubebuilder:object:generate=false
type TermKind string

// The kinds of terms.
const (
	TermCondition TermKind = "condition type"
	TermState     TermKind = "state"
	TermClass     TermKind = "error class"
	TermReason    TermKind = "reason"
)

// Objects whose status contains a term.
const (
	objectCacheCluster = "CacheCluster"
	objectMember       = "member"
	objectCaches       = "CacheCluster, MemberCache"
	objectMemberCache  = "MemberCache"
	objectProfile      = "ClusterProfile"
)

// Term is one condition type, state, error class or reason, with its meaning.
// +kubebuilder:object:generate=false
type Term struct {
	Word string   `json:"word"`
	Kind TermKind `json:"kind"`
	// Object is the kind whose status contains the term. The value member stands for
	// the entry of a member in a CacheCluster, and for its MemberCache.
	Object string `json:"on"`
	// Class is the error class of a reason, or empty.
	Class   ErrorClass `json:"class,omitempty"`
	Meaning string     `json:"meaning"`
	// Remedy is the action to take; for an error class, who has to act.
	Remedy string `json:"remedy,omitempty"`
	// Retry is the time of the next attempt of an error class.
	Retry string `json:"nextTry,omitempty"`
}

const (
	noRemedy = "none needed"
	join     = "`reconcile-lab join NAME --kubeconfig FILE`"
)

// Glossary returns all terms of a status, grouped by kind. It is the source of
// docs/conditions.md and of `reconcile-lab explain`.
func Glossary() []Term {
	return slices.Concat(conditionTerms, stateTerms, classTerms, cacheClusterTerms, memberTerms, profileTerms)
}

var conditionTerms = []Term{
	{Word: ConditionReady, Kind: TermCondition, Object: objectCaches, Meaning: "every desired pod is ready, and the children have the desired values. `Unknown` if a member is unreachable and all others are ready"},
	{Word: ConditionProgressing, Kind: TermCondition, Object: objectCacheCluster, Meaning: "at least one member moves towards the desired state"},
	{Word: ConditionDegraded, Kind: TermCondition, Object: objectCacheCluster, Meaning: "pods fail in at least one member"},
	{Word: ConditionPlaced, Kind: TermCondition, Object: objectCacheCluster, Meaning: "the placement selects at least one member, and every member that it names exists"},
	{Word: ConditionApplied, Kind: TermCondition, Object: objectMemberCache, Meaning: "the children in the member have the desired values"},
	{Word: ConditionDrifted, Kind: TermCondition, Object: objectCaches, Meaning: "drift remains in a member; `openDrifts` lists the fields and their managers. Present only while True"},
	{Word: ConditionReconciling, Kind: TermCondition, Object: objectCaches, Meaning: "a change is in progress ([kstatus](https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md) shows InProgress). Present only while True"},
	{Word: ConditionStalled, Kind: TermCondition, Object: objectCaches, Meaning: "the cache is blocked until someone acts, or until the cause ends (kstatus shows Failed). Present only while True"},
	{Word: ConditionAbandoned, Kind: TermCondition, Object: objectCacheCluster, Meaning: "children are orphaned in the members that the message names. `False` if the annotation `cache.reconcile-lab.io/abandon` names a member that does not exist. Otherwise absent"},
	{Word: ConditionReachable, Kind: TermCondition, Object: objectProfile, Meaning: "the hub can connect to the member with its credential"},
	{Word: ConditionCredentialExpiring, Kind: TermCondition, Object: objectProfile, Meaning: "the credential expires within 30 days, or within the last third of its validity if that is shorter, or has expired. Absent without an expiry time"},
	{Word: ConditionLeftovers, Kind: TermCondition, Object: objectProfile, Meaning: "the member has orphaned children: no MemberCache of this hub owns them. Present only while True"},
}

var stateTerms = []Term{
	{Word: string(MemberReady), Kind: TermState, Object: objectMember, Meaning: "the children have the desired values, and every desired pod is ready"},
	{Word: string(MemberProgressing), Kind: TermState, Object: objectMember, Meaning: "the member moves towards the desired state"},
	{Word: string(MemberDegraded), Kind: TermState, Object: objectMember, Meaning: "the children have the desired values, but pods fail"},
	{Word: string(MemberBlocked), Kind: TermState, Object: objectMember, Meaning: "the member is blocked until someone follows the hint, or until the cause ends (`selfResolving`)"},
	{Word: string(MemberUnreachable), Kind: TermState, Object: objectMember, Meaning: "the member does not answer; its current state is unknown"},
	{Word: string(MemberDeleting), Kind: TermState, Object: objectMember, Meaning: "the children are being deleted"},
}

var classTerms = []Term{
	{Word: string(ClassInvalid), Kind: TermClass, Object: objectMember, Meaning: "the spec cannot be applied",
		Remedy: "the user, in the spec", Retry: "when the spec changes"},
	{Word: string(ClassBlocked), Kind: TermClass, Object: objectMember, Meaning: "an object or a setting in the member or on the hub prevents the change",
		Remedy: "the user, in the member or on the hub", Retry: "on the event that removes the cause, or after 5 s, doubling up to 5 min (1 min for another owner's object)"},
	{Word: string(ClassConflict), Kind: TermClass, Object: objectMember, Meaning: "another controller reverts the same correction repeatedly",
		Remedy: "the operator of the other controller", Retry: "after 30 s, then after 1, 2, 4 and 5 min"},
	{Word: string(ClassUnreachable), Kind: TermClass, Object: objectMember, Meaning: "the API server of the member does not answer, or refuses the credential",
		Remedy: "the operator of the member or of its network", Retry: "when a probe of the member succeeds; as Transient while the member is still connected"},
	{Word: string(ClassTransient), Kind: TermClass, Object: objectMember, Meaning: "the API server responded with an error that is usually temporary",
		Remedy: "no one; the hub retries", Retry: "after 100 ms, doubling up to 1 min, and not before the time that the API server requests (up to 5 min)"},
}

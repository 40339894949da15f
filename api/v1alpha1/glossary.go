package v1alpha1

import "slices"

// TermKind is what a word of a status is.
// +kubebuilder:object:generate=false
type TermKind string

// The kinds of terms.
const (
	TermCondition TermKind = "condition type"
	TermState     TermKind = "state"
	TermClass     TermKind = "error class"
	TermReason    TermKind = "reason"
)

// Objects whose status holds a term.
const (
	onCacheCluster = "CacheCluster"
	onMember       = "member"
	onBoth         = "CacheCluster, MemberCache"
	onMemberCache  = "MemberCache"
	onProfile      = "ClusterProfile"
)

// Term explains one word that can stand in a status.
// +kubebuilder:object:generate=false
type Term struct {
	Word string   `json:"word"`
	Kind TermKind `json:"kind"`
	// On is what the status is of: CacheCluster, MemberCache, ClusterProfile, or
	// member for an entry of a CacheCluster and its MemberCache.
	On string `json:"on"`
	// Class of the error that a reason stands for, or empty.
	Class   ErrorClass `json:"class,omitempty"`
	Meaning string     `json:"meaning"`
	// Remedy is what to do, or who has to act.
	Remedy string `json:"remedy,omitempty"`
	// NextTry of an error class.
	NextTry string `json:"nextTry,omitempty"`
}

const (
	noRemedy = "none needed"
	joinIt   = "`reconcile-lab join NAME --kubeconfig FILE`"
)

// Glossary gives every word that can stand in a status, each kind together. It is
// the one source of docs/conditions.md and of `reconcile-lab explain`.
func Glossary() []Term {
	return slices.Concat(conditionTerms, stateTerms, classTerms, cacheClusterTerms, memberTerms, profileTerms)
}

var conditionTerms = []Term{
	{Word: ConditionReady, Kind: TermCondition, On: onBoth, Meaning: "every wanted pod is ready, and the children are as the spec asks. `Unknown` while a member cannot be seen and the others are ready"},
	{Word: ConditionProgressing, Kind: TermCondition, On: onCacheCluster, Meaning: "at least one member is moving towards the spec"},
	{Word: ConditionDegraded, Kind: TermCondition, On: onCacheCluster, Meaning: "pods fail in at least one member"},
	{Word: ConditionPlaced, Kind: TermCondition, On: onCacheCluster, Meaning: "placement chose at least one member, and every member that it names exists"},
	{Word: ConditionApplied, Kind: TermCondition, On: onMemberCache, Meaning: "the children in the member are as the spec asks"},
	{Word: ConditionDrifted, Kind: TermCondition, On: onBoth, Meaning: "only present while True: something differs in a member and is not put back; `openDrifts` says what and who did it"},
	{Word: ConditionReconciling, Kind: TermCondition, On: onBoth, Meaning: "only present while True: work is going on ([kstatus](https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md) shows InProgress)"},
	{Word: ConditionStalled, Kind: TermCondition, On: onBoth, Meaning: "only present while True: nothing moves until somebody acts (kstatus shows Failed)"},
	{Word: ConditionAbandoned, Kind: TermCondition, On: onCacheCluster, Meaning: "only present while there is something to tell: children were left behind in the members that the message names. `False` if the annotation that lets members go names one that does not exist"},
	{Word: ConditionReachable, Kind: TermCondition, On: onProfile, Meaning: "the hub can talk to the member with the credential that it has"},
	{Word: ConditionCredentialExpiring, Kind: TermCondition, On: onProfile, Meaning: "the hub's credential for the member ends within 30 days (or within the last third of its life, if that is shorter), or has ended. Absent if it has no end"},
	{Word: ConditionLeftovers, Kind: TermCondition, On: onProfile, Meaning: "only present while True: the member holds children that no MemberCache of this hub owns"},
}

var stateTerms = []Term{
	{Word: string(MemberReady), Kind: TermState, On: onMember, Meaning: "the children are as desired and every wanted pod is ready"},
	{Word: string(MemberProgressing), Kind: TermState, On: onMember, Meaning: "moving towards the desired state"},
	{Word: string(MemberDegraded), Kind: TermState, On: onMember, Meaning: "the children are as desired, but pods fail"},
	{Word: string(MemberBlocked), Kind: TermState, On: onMember, Meaning: "nothing moves until somebody does what the hint says"},
	{Word: string(MemberUnreachable), Kind: TermState, On: onMember, Meaning: "the member does not answer, so nothing is known about it"},
	{Word: string(MemberDeleting), Kind: TermState, On: onMember, Meaning: "the children are being removed"},
}

var classTerms = []Term{
	{Word: string(ClassInvalid), Kind: TermClass, On: onMember, Meaning: "the spec cannot be met as it is",
		Remedy: "you, in the spec", NextTry: "when the spec changes"},
	{Word: string(ClassBlocked), Kind: TermClass, On: onMember, Meaning: "something in the member or on the hub is in the way",
		Remedy: "you, in the member or on the hub", NextTry: "on the event it waits for, else after 5 s, doubling up to 5 min (1 min for somebody else's object)"},
	{Word: string(ClassConflict), Kind: TermClass, On: onMember, Meaning: "another manager keeps changing a field back",
		Remedy: "whoever runs the other controller", NextTry: "slower each time"},
	{Word: string(ClassUnreachable), Kind: TermClass, On: onMember, Meaning: "the member's API server does not answer, or does not take the credential",
		Remedy: "whoever runs the member or its network", NextTry: "when a probe of the member succeeds; while it still counts as connected, as Transient"},
	{Word: string(ClassTransient), Kind: TermClass, On: onMember, Meaning: "the API server answered with an error that usually passes",
		Remedy: "nobody", NextTry: "after 100 ms, doubling up to 1 min, and not before the time that the API server asks for (up to 5 min)"},
}

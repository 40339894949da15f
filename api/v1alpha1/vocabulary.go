package v1alpha1

// Condition types. Each is documented in docs/conditions.md.
const (
	ConditionReady       = "Ready"
	ConditionProgressing = "Progressing"
	ConditionDegraded    = "Degraded"
	ConditionPlaced      = "Placed"
	ConditionApplied     = "Applied"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionDrifted is present while something differs in a member that is not put
	// back.
	ConditionDrifted = "Drifted"
	// ConditionAbandoned is present on a CacheCluster while the annotation that lets
	// members go needs to be told about: what was left behind, or a name that is none.
	ConditionAbandoned = "Abandoned"

	// ConditionReachable is set on a ClusterProfile: whether the hub can talk to
	// the member with the credentials that it has.
	ConditionReachable = "cache.reconcile-lab.io/Reachable"
	// ConditionCredentialExpiring is set on a ClusterProfile whose credential has an
	// end: whether it is near.
	ConditionCredentialExpiring = "cache.reconcile-lab.io/CredentialExpiring"
	// ConditionLeftovers is set on a ClusterProfile while the member holds children
	// of which the hub has no MemberCache.
	ConditionLeftovers = "cache.reconcile-lab.io/Leftovers"
)

// Error classes of a member's last error.
const (
	ClassInvalid     ErrorClass = "Invalid"
	ClassBlocked     ErrorClass = "Blocked"
	ClassConflict    ErrorClass = "Conflict"
	ClassUnreachable ErrorClass = "Unreachable"
	ClassTransient   ErrorClass = "Transient"
)

// Reasons of a CacheCluster's conditions.
const (
	ReasonAllMembersReady    = "AllMembersReady"
	ReasonMembersNotReady    = "MembersNotReady"
	ReasonMembersUnreachable = "MembersUnreachable"
	ReasonMembersBlocked     = "MembersBlocked"
	ReasonMembersDegraded    = "MembersDegraded"
	ReasonMembersSettled     = "MembersSettled"
	ReasonMembersHealthy     = "MembersHealthy"
	ReasonMembersProgressing = "MembersProgressing"
	ReasonPlaced             = "Placed"
	ReasonNoMatchingMembers  = "NoMatchingMembers"
	ReasonNotObserved        = "NotObserved"
	ReasonUnknownMembers     = "UnknownMembers"
	ReasonInvalidPlacement   = "InvalidPlacement"
	ReasonNameConflict       = "NameConflict"
	ReasonDeleting           = "Deleting"
	ReasonAbandoned          = "Abandoned"
)

// Reasons of a MemberCache's conditions and of a member's entry in a
// CacheCluster's status.
const (
	ReasonPodsReady            = "PodsReady"
	ReasonPodsStarting         = "PodsStarting"
	ReasonScaledToZero         = "ScaledToZero"
	ReasonRollingOut           = "RollingOut"
	ReasonApplied              = "Applied"
	ReasonPending              = "Pending"
	ReasonInvalidSpec          = "InvalidSpec"
	ReasonObjectOfAnother      = "ObjectOfAnother"
	ReasonForbidden            = "Forbidden"
	ReasonQuotaExceeded        = "QuotaExceeded"
	ReasonNamespaceMissing     = "NamespaceMissing"
	ReasonNamespaceTerminating = "NamespaceTerminating"
	ReasonImmutableField       = "ImmutableField"
	ReasonKindMissing          = "KindMissing"
	ReasonRejected             = "Rejected"
	ReasonRejectedByPolicy     = "RejectedByPolicy"
	ReasonMemberUnreachable    = "MemberUnreachable"
	ReasonUnauthorized         = "Unauthorized"
	ReasonUnknownMember        = "UnknownMember"
	ReasonMemberError          = "MemberError"
	ReasonImagePullFailing     = "ImagePullFailing"
	ReasonPodsCrashing         = "PodsCrashing"
	ReasonPodsUnschedulable    = "PodsUnschedulable"
	ReasonConfigMissing        = "ConfigMissing"
	ReasonChildrenTerminating  = "ChildrenTerminating"
	ReasonRecreating           = "Recreating"
	ReasonPodsRefused          = "PodsRefused"
	ReasonDriftReported        = "DriftReported"
	ReasonDriftFight           = "DriftFight"
	ReasonDriftRefused         = "DriftRefused"
	ReasonForeignFields        = "ForeignFields"
	// ReasonRecovered is on Events only.
	ReasonRecovered = "Recovered"
)

// Reasons of the Reachable condition of a ClusterProfile.
const (
	ReasonReachable          = "Reachable"
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsInvalid = "CredentialsInvalid"
	ReasonProbeFailed        = "ProbeFailed"
	ReasonSyncFailed         = "SyncFailed"
)

// Reasons of the CredentialExpiring and Leftovers conditions of a ClusterProfile.
const (
	ReasonCredentialValid       = "CredentialValid"
	ReasonCredentialExpiresSoon = "CredentialExpiresSoon"
	ReasonCredentialExpired     = "CredentialExpired"
	ReasonLeftoversFound        = "LeftoversFound"
)

// Labels and annotations. A child carries the first five labels, of which
// LabelCacheCluster is the one that it is found again by, its owner's mark, and the
// hash of its intent, which tells a changed wish from drift.
const (
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelName         = "app.kubernetes.io/name"
	LabelInstance     = "app.kubernetes.io/instance"
	LabelCacheCluster = "cache.reconcile-lab.io/cachecluster"
	LabelCluster      = "cache.reconcile-lab.io/cluster"

	// AnnotationOwner is the UID of the CacheCluster that a child belongs to and the
	// name of the member, so that two hubs, two CacheClusters of the same name, and
	// one cluster that is a member under two names are told apart.
	AnnotationOwner = "cache.reconcile-lab.io/owner"
	// AnnotationIntent is the hash of the intent that was applied.
	AnnotationIntent = "cache.reconcile-lab.io/intent"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "reconcile-lab"
	// FieldManager owns what is applied in the members.
	FieldManager = "reconcile-lab"
	// AnnotationAbandon on a CacheCluster names members, separated by commas, or "*"
	// for every member that does not answer: its children there are let go as they
	// are, and what is left behind is reported.
	AnnotationAbandon = "cache.reconcile-lab.io/abandon"
	// Finalizer keeps a CacheCluster or MemberCache until its children are gone.
	Finalizer = "cache.reconcile-lab.io/children"

	// InventoryNamespace is the hub namespace of ClusterProfiles and credentials,
	// unless the manager is told another.
	InventoryNamespace = "reconcile-lab-system"
	// LabelCredentialOf is on the Secret that holds a member's kubeconfig under
	// the key CredentialKey; its value is the ClusterProfile's name.
	LabelCredentialOf = "cache.reconcile-lab.io/credential-of"
	// CredentialKey of the kubeconfig in such a Secret.
	CredentialKey = "kubeconfig"

	// LabelRegion, LabelZone and LabelProvider describe a member; `join` and the
	// lab set them on its ClusterProfile.
	LabelRegion   = "topology.kubernetes.io/region"
	LabelZone     = "topology.kubernetes.io/zone"
	LabelProvider = "cache.reconcile-lab.io/provider"
)

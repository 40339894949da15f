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
	// ConditionDrifted is present while drift remains in a member.
	ConditionDrifted = "Drifted"
	// ConditionAbandoned is present on a CacheCluster while its annotation
	// AnnotationAbandon has an effect: orphaned children, or the name of a member that
	// does not exist.
	ConditionAbandoned = "Abandoned"

	// ConditionReachable is set on a ClusterProfile. It reports whether the hub can
	// connect to the member with its credential.
	ConditionReachable = "cache.reconcile-lab.io/Reachable"
	// ConditionCredentialExpiring is set on a ClusterProfile whose credential has an
	// expiry time. It reports whether the credential expires soon.
	ConditionCredentialExpiring = "cache.reconcile-lab.io/CredentialExpiring"
	// ConditionLeftovers is set on a ClusterProfile while the member has orphaned
	// children: children without a MemberCache on this hub.
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

// Reasons of the condition ConditionReachable of a ClusterProfile.
const (
	ReasonReachable          = "Reachable"
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsInvalid = "CredentialsInvalid"
	ReasonProbeFailed        = "ProbeFailed"
	ReasonSyncFailed         = "SyncFailed"
)

// Reasons of the conditions ConditionCredentialExpiring and ConditionLeftovers of a
// ClusterProfile.
const (
	ReasonCredentialValid       = "CredentialValid"
	ReasonCredentialExpiresSoon = "CredentialExpiresSoon"
	ReasonCredentialExpired     = "CredentialExpired"
	ReasonLeftoversFound        = "LeftoversFound"
)

// Labels and annotations. A child has the first five labels, the owner mark, and the
// hash of its intent. The hub finds its children by LabelCacheCluster. The hash
// distinguishes a changed spec from drift.
const (
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelName         = "app.kubernetes.io/name"
	LabelInstance     = "app.kubernetes.io/instance"
	LabelCacheCluster = "cache.reconcile-lab.io/cachecluster"
	LabelCluster      = "cache.reconcile-lab.io/cluster"

	// AnnotationOwner is the owner mark of a child: the UID of its CacheCluster and the
	// name of the member. It distinguishes two hubs, two CacheClusters of the same name,
	// and two names of the same member cluster.
	AnnotationOwner = "cache.reconcile-lab.io/owner"
	// AnnotationIntent is the hash of the intent that was applied.
	AnnotationIntent = "cache.reconcile-lab.io/intent"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "reconcile-lab"
	// FieldManager is the field manager of the hub in the members.
	FieldManager = "reconcile-lab"
	// AnnotationAbandon on a CacheCluster lists members to abandon, separated by commas;
	// "*" stands for every unreachable member. The hub does not change the children
	// there, and reports them as orphaned.
	AnnotationAbandon = "cache.reconcile-lab.io/abandon"
	// Finalizer delays the deletion of a CacheCluster or MemberCache until its children
	// are deleted.
	Finalizer = "cache.reconcile-lab.io/children"

	// InventoryNamespace is the default namespace of ClusterProfiles and credentials on
	// the hub.
	InventoryNamespace = "reconcile-lab-system"
	// LabelCredentialOf is the label of the Secret with the kubeconfig of a member under
	// the key CredentialKey. Its value is the name of the ClusterProfile.
	LabelCredentialOf = "cache.reconcile-lab.io/credential-of"
	// CredentialKey is the key of the kubeconfig in such a Secret.
	CredentialKey = "kubeconfig"

	// LabelRegion is the label of a ClusterProfile for the region of the member.
	LabelRegion = "topology.kubernetes.io/region"
	// LabelZone is the label of a ClusterProfile for the zone of the member.
	LabelZone = "topology.kubernetes.io/zone"
	// LabelProvider is the label of a ClusterProfile for the provider of the member.
	LabelProvider = "cache.reconcile-lab.io/provider"
)

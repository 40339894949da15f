package v1alpha1

var cacheClusterTerms = []Term{
	cacheReason(ReasonNotObserved, "shown by `reconcile-lab` where there is no condition yet: the hub manager has not looked at the CacheCluster", "wait a moment; if it stays, see whether the hub manager runs"),
	cacheReason(ReasonAllMembersReady, "every placed member is ready", noRemedy),
	cacheReason(ReasonMembersNotReady, "some members are not ready; the message counts them and names the first", "wait, or look at `reconcile-lab status NAME`"),
	cacheReason(ReasonMembersUnreachable, "some members do not answer, so `Ready` is Unknown", "see the member's row; `kubectl get clusterprofiles -n reconcile-lab-system -o yaml`"),
	cacheReason(ReasonMembersBlocked, "some members wait for somebody", "do what the hint of the member's row says"),
	cacheReason(ReasonMembersDegraded, "pods fail in some members", "see the member's row"),
	cacheReason(ReasonMembersSettled, "no member is moving (`Progressing` is False)", noRemedy),
	cacheReason(ReasonMembersHealthy, "nothing is wrong in any member (`Degraded` is False)", noRemedy),
	cacheReason(ReasonMembersProgressing, "some members are moving towards the spec", "wait"),
	cacheReason(ReasonPlaced, "placement chose the members that the message counts", noRemedy),
	cacheReason(ReasonNoMatchingMembers, "placement matches no member, so nothing runs anywhere", "correct `spec.placement`, label a ClusterProfile, or `reconcile-lab join` a member"),
	cacheReason(ReasonUnknownMembers, "placement, or the annotation `cache.reconcile-lab.io/abandon`, names members that have no ClusterProfile", "correct the name, or join the member: "+joinIt),
	cacheReason(ReasonInvalidPlacement, "the selector cannot be read", "correct the field that the message names"),
	cacheReason(ReasonNameConflict, "a MemberCache of the name that is needed belongs to an earlier CacheCluster of this name, or to somebody else", "wait until it is gone, or delete it"),
	cacheReason(ReasonAbandoned, "children were left behind in a member that did not answer, as the annotation `cache.reconcile-lab.io/abandon` or `reconcile-lab leave --abandon` asked",
		"remove them there some day; the message names them. Removing the annotation removes the condition"),
	cacheReason(ReasonDeleting, "being deleted; the message names the members that still hold children",
		"wait; for a member that never comes back see [Deleting while a member is unreachable](#deleting-while-a-member-is-unreachable)"),
}

var memberTerms = []Term{
	memberReason(ReasonPodsReady, "", "every wanted pod is ready", noRemedy),
	memberReason(ReasonPodsStarting, "", "pods exist but are not all ready, or not yet for `pod.minReadySeconds`", "wait"),
	memberReason(ReasonScaledToZero, "", "`replicas: 0`, and no pod is left", noRemedy),
	memberReason(ReasonRollingOut, "", "pods are being replaced, added or removed", "wait"),
	memberReason(ReasonApplied, "", "the children are as the spec asks", noRemedy),
	memberReason(ReasonPending, "", "not yet tried", "wait; it is next in the queue"),
	memberReason(ReasonRecovered, "", "on events only: trouble that an earlier event told of is over", noRemedy),
	memberReason(ReasonInvalidSpec, ClassInvalid, "no children can be rendered from the spec; the message names field, value and fix", "change that field, or the override that sets it"),
	memberReason(ReasonRejected, ClassInvalid, "the member's API server refuses a child", "change the field that the message names"),
	memberReason(ReasonRejectedByPolicy, ClassBlocked, "an admission webhook, a policy or an admission plugin of the member refuses a child, or changes its replicas",
		"see the hint: change the spec as the message says, or exempt the namespace in the member"),
	memberReason(ReasonObjectOfAnother, ClassBlocked, "an object of the same name exists and is not ours, or carries another CacheCluster's mark; the message says whose it is, and nothing of it was changed",
		"rename the CacheCluster, remove the object in the member, or take it over with `spec.takeover`; another's mark is never taken over"),
	memberReason(ReasonForbidden, ClassBlocked, "the hub's account in the member lacks a right", joinIt+" sets all that are needed"),
	memberReason(ReasonQuotaExceeded, ClassBlocked, "a ResourceQuota of the member is used up", "raise it, or lower memory or replicas for that member with an override"),
	memberReason(ReasonNamespaceMissing, ClassBlocked, "the namespace does not exist in the member and `placement.createNamespace` is false", "create it, or set `createNamespace: true`"),
	memberReason(ReasonNamespaceTerminating, ClassBlocked, "the namespace is being deleted in the member", "wait until it is gone"),
	memberReason(ReasonImmutableField, ClassBlocked, "fields were changed that cannot change in place; the message names each with what it is and what it should be, and everything else is applied",
		"put them back, or consent to `spec.recreate: OrphanPods`"),
	memberReason(ReasonRecreating, "", "a child is being deleted and created anew, with the consent of `spec.recreate`; of a StatefulSet the pods go on running", "wait"),
	memberReason(ReasonKindMissing, ClassBlocked, "the member does not serve a kind or a field that is needed", "update the member: Kubernetes 1.22 or later"),
	memberReason(ReasonMemberUnreachable, ClassUnreachable, "no connection: refused, no route, timeout, TLS", "check the member's API server and the network to it; it is tried again by itself"),
	memberReason(ReasonUnauthorized, ClassUnreachable, "the member does not accept the credential, or the hub cannot use it", "renew it: "+joinIt),
	memberReason(ReasonUnknownMember, ClassUnreachable, "no ClusterProfile has this name (where nothing was placed there yet, the class is `Blocked`), or it is gone while children may be left", "correct the name, join the member (again), or let go of it with `reconcile-lab leave --abandon` or the annotation `cache.reconcile-lab.io/abandon`"),
	memberReason(ReasonMemberError, ClassTransient, "the member answered with an error that usually passes", "wait; the message holds the error"),
	memberReason(ReasonImagePullFailing, "", "the image of a pod cannot be pulled", "check `spec.image` and `spec.version`, and the member's access to the registry"),
	memberReason(ReasonPodsCrashing, "", "a container keeps failing", "read its log in the member; the hint has the command"),
	memberReason(ReasonPodsUnschedulable, "", "a pod fits on no node", "add nodes, or lower memory, resources or replicas with an override"),
	memberReason(ReasonConfigMissing, "", "a container refers to a Secret or ConfigMap that is not there", "create it in the member"),
	memberReason(ReasonPodsRefused, "", "the member does not let the StatefulSet make its pods: a quota, a LimitRange, Pod Security, a missing priority class, a webhook or a policy",
		"see the hint; it clears by itself when the member lets the pods in"),
	memberReason(ReasonDriftReported, "", "somebody changed a child, and `drift.policy: Report` leaves it so; `openDrifts` says what and who", "put the field back, change the spec, or set `drift.policy: Correct`"),
	memberReason(ReasonDriftRefused, "", "somebody changed a child, and the member refuses to have it put right; `openDrifts` says what and who, and Ready why", "do what the hint of Ready says: undo the change in the member, or let the hub do it"),
	memberReason(ReasonDriftFight, ClassConflict, "another manager keeps changing a field back; the message names it, the field and how often", "stop the other manager, or let it have the field with a rule in `drift.ignore`; it goes back to normal by itself two minutes after the last change"),
	memberReason(ReasonForeignFields, "", "somebody added fields to the pod template, and `drift.foreign: Report` leaves them", "remove them, set `drift.foreign` to Keep or Remove, or accept them with a rule in `drift.ignore`"),
	memberReason(ReasonChildrenTerminating, "", "children are being deleted; the message names what still exists", "wait; look for finalizers on the named objects"),
}

var profileTerms = []Term{
	profileReason(ReasonReachable, "the member answers and its objects are watched. The message says so if a newer credential does not work", "none needed; for a credential that does not work: "+joinIt),
	profileReason(ReasonCredentialsMissing, "there is no credential for this member on the hub", joinIt),
	profileReason(ReasonCredentialsInvalid, "the credential cannot be used: not a kubeconfig, or refused by the member", joinIt),
	profileReason(ReasonProbeFailed, "the member does not answer", "check its API server and the network to it; it is probed again by itself"),
	profileReason(ReasonSyncFailed, "it answers, but its objects cannot be listed or watched", "see the message; usually a missing right: join it again"),
	profileReason(ReasonCredentialValid, "the credential has an end, and it is not near", noRemedy),
	profileReason(ReasonCredentialExpiresSoon, "the credential ends soon; the message has the date and the days that are left", "renew it: "+joinIt),
	profileReason(ReasonCredentialExpired, "the credential has ended", "renew it: "+joinIt),
	profileReason(ReasonLeftoversFound, "the member holds children that no MemberCache of this hub owns; the message names them",
		"remove or release them with the commands of the message, unless another hub looks after them; see [members.md](members.md#orphaned-children)"),
}

func cacheReason(word, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, On: onCacheCluster, Meaning: meaning, Remedy: remedy}
}

func memberReason(word string, class ErrorClass, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, On: onMember, Class: class, Meaning: meaning, Remedy: remedy}
}

func profileReason(word, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, On: onProfile, Meaning: meaning, Remedy: remedy}
}

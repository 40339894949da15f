package v1alpha1

var cacheClusterTerms = []Term{
	cacheReason(ReasonNotObserved, "`reconcile-lab` shows this if there is no condition yet: the hub manager has not reconciled the CacheCluster",
		"wait some seconds, then check the hub manager: `kubectl get pods -n reconcile-lab-system`"),
	cacheReason(ReasonAllMembersReady, "every placed member is ready", noRemedy),
	cacheReason(ReasonMembersNotReady, "some members are not ready; the message counts them and names the first", "wait, or see `reconcile-lab status NAME`"),
	cacheReason(ReasonMembersUnreachable, "some members do not answer, so `Ready` is Unknown", "see `reconcile-lab status NAME` and `kubectl get clusterprofiles -n reconcile-lab-system -o yaml`"),
	cacheReason(ReasonMembersBlocked, "some members are blocked", "follow the hint of the member in `reconcile-lab status NAME`"),
	cacheReason(ReasonMembersDegraded, "pods fail in some members", "follow the hint of the member in `reconcile-lab status NAME`"),
	cacheReason(ReasonMembersSettled, "no member changes (`Progressing` is False)", noRemedy),
	cacheReason(ReasonMembersHealthy, "no pod fails in any member (`Degraded` is False)", noRemedy),
	cacheReason(ReasonMembersProgressing, "some members move towards the desired state", "wait"),
	cacheReason(ReasonPlaced, "the placement selects members; the message counts them", noRemedy),
	cacheReason(ReasonNoMatchingMembers, "the placement selects no member, so the cache does not run", "correct `spec.placement`, label a ClusterProfile, or join a member: "+join),
	cacheReason(ReasonUnknownMembers, "the placement, or the annotation `cache.reconcile-lab.io/abandon`, names members without a ClusterProfile", "correct the name, or join the member: "+join),
	cacheReason(ReasonInvalidPlacement, "`clusterSelector` is invalid", "correct the field that the message names"),
	cacheReason(ReasonNameConflict, "a MemberCache of the required name has another owner: an earlier CacheCluster of this name, or none", "wait until it is deleted, or delete it: `kubectl delete mcache -n NAMESPACE NAME`"),
	cacheReason(ReasonAbandoned, "a member was abandoned: its children are orphaned. The annotation `cache.reconcile-lab.io/abandon` or `reconcile-lab leave --abandon` requested it",
		"delete the children that the message names in the member, then remove the annotation; the condition ends with it"),
	cacheReason(ReasonDeleting, "the CacheCluster is being deleted; the message names the members that still have children",
		"wait; for a member that never returns see [Deleting while a member is unreachable](#deleting-while-a-member-is-unreachable)"),
}

var memberTerms = []Term{
	memberReason(ReasonPodsReady, "", "every desired pod is ready", noRemedy),
	memberReason(ReasonPodsStarting, "", "pods exist, but not all are ready, or not for `pod.minReadySeconds`", "wait"),
	memberReason(ReasonScaledToZero, "", "`replicas` is 0, and no pod exists", noRemedy),
	memberReason(ReasonRollingOut, "", "pods are being replaced, added or removed", "wait"),
	memberReason(ReasonApplied, "", "the children have the desired values", noRemedy),
	memberReason(ReasonPending, "", "the member has not reported a status for this revision yet", "wait"),
	memberReason(ReasonRecovered, "", "events only: a failure that an earlier event reported is over", noRemedy),
	memberReason(ReasonInvalidSpec, ClassInvalid, "the hub cannot render children from the spec; the message names field, value and fix", "change that field, or the override that sets it"),
	memberReason(ReasonRejected, ClassInvalid, "the API server of the member refuses a child", "change the field that the message names"),
	memberReason(ReasonRejectedByPolicy, ClassBlocked, "an admission webhook, policy or plugin of the member refuses a child, or changes its replicas",
		"change the spec as the message describes, or exempt the namespace in the member"),
	memberReason(ReasonObjectOfAnother, ClassBlocked, "an object of the same name exists and is not a child of this CacheCluster. The message names its owner. The hub did not change it",
		"rename the CacheCluster, delete the object in the member, or take it over with `spec.takeover`. An object of another CacheCluster is never taken over"),
	memberReason(ReasonForbidden, ClassBlocked, "the account of the hub in the member lacks a permission", "grant all permissions: "+join),
	memberReason(ReasonQuotaExceeded, ClassBlocked, "a ResourceQuota of the member is exhausted", "raise the quota, or lower memory or replicas for that member with an override"),
	memberReason(ReasonNamespaceMissing, ClassBlocked, "the namespace does not exist in the member, and `placement.createNamespace` is false", "create it: `kubectl create namespace NAMESPACE`, or set `createNamespace: true`"),
	memberReason(ReasonNamespaceTerminating, ClassBlocked, "the namespace is being deleted in the member", "wait until it is deleted"),
	memberReason(ReasonImmutableField, ClassBlocked, "immutable fields changed. The message names each field with its live and its desired value; all other changes are applied",
		"revert the fields in the spec, or set `spec.recreate: OrphanPods`"),
	memberReason(ReasonRecreating, "", "a child is being deleted and recreated, as `spec.recreate` allows; the pods of a StatefulSet keep running", "wait"),
	memberReason(ReasonKindMissing, ClassBlocked, "the member does not serve a required kind or field", "update the member to Kubernetes 1.22 or later"),
	memberReason(ReasonMemberUnreachable, ClassUnreachable, "no connection: refused, no route, timeout, or TLS", "check the API server of the member and the network to it; the hub retries"),
	memberReason(ReasonUnauthorized, ClassUnreachable, "the member refuses the credential, or the hub cannot use it", "renew it: "+join),
	memberReason(ReasonUnknownMember, ClassUnreachable, "no ClusterProfile has this name, or it was deleted while children can still exist. Without children the class is `Blocked`",
		"correct the name, join the member, or abandon it: `reconcile-lab leave NAME --abandon`, or for one cache the annotation `cache.reconcile-lab.io/abandon`"),
	memberReason(ReasonMemberError, ClassTransient, "the member responded with an error that is usually temporary", "wait; the message contains the error"),
	memberReason(ReasonImagePullFailing, "", "the image of a pod cannot be pulled", "check `spec.image` and `spec.version`, and the access of the member to the registry"),
	memberReason(ReasonPodsCrashing, "", "a container fails repeatedly", "read its log in the member with the command of the hint"),
	memberReason(ReasonPodsUnschedulable, "", "a pod fits on no node", "add nodes, or lower memory, resources or replicas with an override"),
	memberReason(ReasonConfigMissing, "", "a container refers to a Secret or ConfigMap that does not exist", "create it in the member"),
	memberReason(ReasonPodsRefused, "", "the member refuses the pods of the StatefulSet: a quota, a LimitRange, Pod Security, a missing priority class, a webhook or a policy",
		"follow the hint; the reason ends when the member accepts the pods"),
	memberReason(ReasonDriftReported, "", "another client changed a child, and `drift.policy` is Report; `openDrifts` lists the fields and their managers", "revert the field, change the spec, or set `drift.policy: Correct`"),
	memberReason(ReasonDriftRefused, "", "another client changed a child, and the member refuses the correction. `openDrifts` lists the fields; the condition `Ready` contains the cause",
		"follow the hint of `Ready`: revert the change in the member, or permit the correction"),
	memberReason(ReasonDriftFight, ClassConflict, "the hub is in conflict with another controller. The message names its field manager, the field and the number of corrections",
		"stop the other controller, or allow the field with a rule in `drift.ignore`. The conflict ends after 2 minutes with the desired values"),
	memberReason(ReasonForeignFields, "", "another client added fields to the pod template, and `drift.foreign` is Report", "remove the fields, set `drift.foreign` to Keep or Remove, or allow them with a rule in `drift.ignore`"),
	memberReason(ReasonChildrenTerminating, "", "children are being deleted; the message names the remaining objects", "wait; if it lasts, check the finalizers of these objects: `kubectl get KIND NAME -o yaml`"),
}

var profileTerms = []Term{
	profileReason(ReasonReachable, "the member answers, and the hub watches its objects. The message reports a newer credential that does not work", "none needed; for a credential that does not work: "+join),
	profileReason(ReasonCredentialsMissing, "the hub has no credential for this member", "join the member: "+join),
	profileReason(ReasonCredentialsInvalid, "the credential is not a valid kubeconfig, or the member refuses it", "renew it: "+join),
	profileReason(ReasonProbeFailed, "the member does not answer", "check its API server and the network to it; the hub repeats the probe"),
	profileReason(ReasonSyncFailed, "the member answers, but the hub cannot list or watch its objects", "see the message; the usual cause is a missing permission: "+join),
	profileReason(ReasonCredentialValid, "the credential expires, but not soon", noRemedy),
	profileReason(ReasonCredentialExpiresSoon, "the credential expires soon; the message contains the date and the remaining days", "renew it: "+join),
	profileReason(ReasonCredentialExpired, "the credential has expired", "renew it: "+join),
	profileReason(ReasonLeftoversFound, "the member has orphaned children: no MemberCache of this hub owns them. The message names them",
		"delete or release them with the commands of the message, unless another hub manages them; see [members.md](members.md#orphaned-children)"),
}

func cacheReason(word, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, Object: objectCacheCluster, Meaning: meaning, Remedy: remedy}
}

func memberReason(word string, class ErrorClass, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, Object: objectMember, Class: class, Meaning: meaning, Remedy: remedy}
}

func profileReason(word, meaning, remedy string) Term {
	return Term{Word: word, Kind: TermReason, Object: objectProfile, Meaning: meaning, Remedy: remedy}
}

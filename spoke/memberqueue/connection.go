package memberqueue

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// Engagement is a member's cluster while it answers.
type Engagement struct {
	// Context ends when the member is lost or leaves.
	Context context.Context
	Cluster cluster.Cluster
	// Autoscalers reports whether the cache holds the member's HorizontalPodAutoscalers.
	Autoscalers bool
}

// Connection is the state of a member's connection. It is unknown if both Engagement and
// Unreachable are nil.
type Connection struct {
	// Engagement is nil while the member is disconnected.
	Engagement *Engagement
	// Unreachable is the reason why the member is disconnected, if it is known, and Since
	// is since when, if that is known.
	Unreachable *failure.Failure
	Since       *metav1.Time
}

// Known reports whether the member is known to be connected or unreachable.
func (c Connection) Known() bool { return c.Engagement != nil || c.Unreachable != nil }

// Connection returns the state of the connection. While the member is not engaged, its
// ClusterProfile holds the reason.
func (q *Queue) Connection(ctx context.Context) (Connection, error) {
	if e := q.engagement(); e != nil {
		return Connection{Engagement: e}, nil
	}
	profile := &clusterinventory.ClusterProfile{}
	err := q.hub.GetCache().Get(ctx, client.ObjectKey{Namespace: q.inventoryNamespace, Name: q.name}, profile)
	if client.IgnoreNotFound(err) != nil {
		return Connection{}, err
	}
	if err != nil {
		return Connection{Unreachable: &failure.Failure{Class: v1alpha1.ClassUnreachable, Reason: v1alpha1.ReasonUnknownMember,
			Message: fmt.Sprintf("spec.cluster: %q: the hub has no ClusterProfile of this name", q.name),
			Hint:    "join the member: reconcile-lab join " + q.name + " --kubeconfig FILE; or abandon it: reconcile-lab leave " + q.name + " --abandon"}}, nil
	}
	c := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return Connection{}, nil
	}
	reason := v1alpha1.ReasonMemberUnreachable
	if c.Reason == v1alpha1.ReasonCredentialsInvalid {
		reason = v1alpha1.ReasonUnauthorized
	}
	return Connection{Since: &c.LastTransitionTime, Unreachable: &failure.Failure{Class: v1alpha1.ClassUnreachable,
		Reason: reason, Message: c.Message, Hint: hint(q.name, c.Reason)}}, nil
}

// hint returns the hint for a reason of the Reachable condition.
func hint(member, reason string) string {
	switch reason {
	case v1alpha1.ReasonCredentialsMissing, v1alpha1.ReasonCredentialsInvalid:
		return "join the member: reconcile-lab join " + member + " --kubeconfig FILE"
	case v1alpha1.ReasonSyncFailed:
		return "grant the hub's account in the member the right that the message names: reconcile-lab join " + member + " --kubeconfig FILE grants all of them"
	default:
		return "check the member's API server and the network to it: kubectl --kubeconfig FILE get --raw /readyz; the hub reconciles when it answers"
	}
}

// sameConnection reports whether an update of a ClusterProfile left its Reachable
// condition as it was. Other fields may be written as often as their writer likes.
func sameConnection(old, object any) bool {
	before, ok1 := old.(*clusterinventory.ClusterProfile)
	after, ok2 := object.(*clusterinventory.ClusterProfile)
	if !ok1 || !ok2 || before.UID != after.UID {
		return false
	}
	return equality.Semantic.DeepEqual(meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReachable),
		meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReachable))
}

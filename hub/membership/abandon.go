package membership

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// The hub manager disconnects from a member at its next probe.
const (
	disconnectPoll    = 100 * time.Millisecond
	disconnectTimeout = 15 * time.Second
)

// disconnect deletes the credential of a member and waits until the hub manager has
// disconnected. A connected manager would delete the children that abandon keeps.
func (c *cluster) disconnect(ctx context.Context, namespace, name string) error {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: credentialSecret(name)}}
	if err := c.remove(ctx, &secret); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, disconnectPoll, disconnectTimeout, true, func(ctx context.Context) (bool, error) {
		var p inventoryv1alpha1.ClusterProfile
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
			return true, client.IgnoreNotFound(err)
		}
		return !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReachable), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the hub manager is still connected to member %s %s after its credential was deleted; start the hub manager if it does not run, then run reconcile-lab leave %s --abandon again", name, disconnectTimeout, name)
	}
	return err
}

// abandon deletes the MemberCaches of a member without their children, and returns them
// as they were. It deletes each before it removes the finalizer: the hub manager
// restores the finalizer of one that is not being deleted.
func (c *cluster) abandon(ctx context.Context, name string) ([]v1alpha1.MemberCache, error) {
	placed, err := c.memberCaches(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := range placed {
		mc := &placed[i]
		if err := c.Delete(ctx, mc, client.Preconditions{UID: &mc.UID}); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		released := mc.DeepCopy()
		if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
			continue
		}
		if err := c.Patch(ctx, released, client.MergeFrom(mc)); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	return placed, nil
}

// recordAbandoned creates an event on the CacheCluster of each MemberCache that was
// abandoned. The command prints the same text.
func (c *cluster) recordAbandoned(ctx context.Context, abandoned []v1alpha1.MemberCache, now time.Time) error {
	var first error
	for i := range abandoned {
		mc := &abandoned[i]
		owner := metav1.GetControllerOf(mc)
		if owner == nil {
			continue
		}
		note := "member " + mc.Spec.Cluster + ": " + orphanedChildren(mc)
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, GenerateName: mc.Spec.CacheCluster + "-abandoned-"},
			EventTime:  metav1.NewMicroTime(now), ReportingController: FieldManager, ReportingInstance: FieldManager,
			Action: "Abandon", Reason: v1alpha1.ReasonAbandoned, Type: corev1.EventTypeWarning, Note: note[:min(len(note), maxNote)],
			Regarding: corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: mc.Namespace, Name: owner.Name, UID: owner.UID},
		}
		if err := c.Create(ctx, event); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// maxNote is the length limit of an event's note.
const maxNote = 1024

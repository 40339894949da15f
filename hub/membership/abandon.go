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

// The hub manager lets go of a member within a probe; without a running manager
// there is nobody to wait for.
const (
	letGoPoll    = 100 * time.Millisecond
	letGoPatient = 15 * time.Second
)

// disconnect takes the credential away first and waits until the manager has let
// go of the member: a manager that still holds it would remove the children that
// abandoning promises to keep.
func (c *cluster) disconnect(ctx context.Context, namespace, name string) error {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: credentialSecret(name)}}
	if err := c.remove(ctx, &secret); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, letGoPoll, letGoPatient, true, func(ctx context.Context) (bool, error) {
		var p inventoryv1alpha1.ClusterProfile
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
			return true, client.IgnoreNotFound(err)
		}
		return !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReachable), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the hub manager still holds member %s %s after its credential was removed: is it running? Start it and leave again", name, letGoPatient)
	}
	return err
}

// abandon lets the MemberCaches of a member go without their children, and gives
// them as they last were. They are deleted before they are released: the hub puts
// the finalizer back on others.
func (c *cluster) abandon(ctx context.Context, name string) ([]v1alpha1.MemberCache, error) {
	held, err := c.memberCaches(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := range held {
		mc := &held[i]
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
	return held, nil
}

// tell makes an event on the CacheCluster of each MemberCache that was abandoned. It
// is for whoever looks later; the command prints the same.
func (c *cluster) tell(ctx context.Context, abandoned []v1alpha1.MemberCache, now time.Time) error {
	var first error
	for i := range abandoned {
		mc := &abandoned[i]
		owner := metav1.GetControllerOf(mc)
		if owner == nil {
			continue
		}
		note := "member " + mc.Spec.Cluster + ": " + leftBehind(mc)
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

// maxNote is the length that an API server allows to an event's note.
const maxNote = 1024

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// profileCondition of a member, or nil.
func profileCondition(ctx context.Context, name, kind string) (*metav1.Condition, error) {
	var profile clusterinventory.ClusterProfile
	err := lab.Hub.Client.Get(ctx, types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: name}, &profile)
	return meta.FindStatusCondition(profile.Status.Conditions, kind), err
}

func abandon(t *testing.T, cc *v1alpha1.CacheCluster, value string) {
	t.Helper()
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		if cc.Annotations == nil {
			cc.Annotations = map[string]string{}
		}
		cc.Annotations[v1alpha1.AnnotationAbandon] = value
	})
}

func TestAbandon_ByAnnotationReportsOrphansWhenMemberReturns(t *testing.T) {
	gate := behindAGate(t, "silent", lab.Members[two])
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, "letgo")
	cc := create(t, cache(ns, "left", "silent", one))
	isReady(t, cc)
	if err := gate.Swallow(t.Context()); err != nil {
		t.Fatal(err)
	}
	away := inState(t, cc, "silent", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
	since := "silent (unreachable since " + away.Since.UTC().Format("2006-01-02T15:04:05Z") + ")"

	t.Run("the deletion reports which member it waits for and since when, and reports an unknown name", func(t *testing.T) {
		abandon(t, cc, "silence,"+one)
		if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
			t.Fatal(err)
		}
		gone(t, one, ns, "left")
		becomes(t, cc, "waits", func(cc *v1alpha1.CacheCluster) error {
			c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady)
			if c == nil || c.Reason != v1alpha1.ReasonDeleting || !strings.Contains(c.Message, since) || !strings.Contains(c.Message, `no member "silence"`) {
				return fmt.Errorf("Ready is %+v, want one with %q", c, since)
			}
			if len(cc.Status.Clusters) != 1 || !strings.Contains(cc.Status.Clusters[0].Hint, "abandon=silent") {
				return fmt.Errorf("clusters %+v", cc.Status.Clusters)
			}
			return nil
		})
	})

	t.Run("with the name of the member it ends, and an event names the orphaned children", func(t *testing.T) {
		abandon(t, cc, "silent")
		eventually(t, "the CacheCluster is deleted", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		eventually(t, "an event", func(ctx context.Context) error {
			var events eventsv1.EventList
			if err := lab.Hub.Client.List(ctx, &events, client.InNamespace(ns)); err != nil {
				return err
			}
			for i := range events.Items {
				if e := &events.Items[i]; e.Reason == v1alpha1.ReasonAbandoned && e.Regarding.Name == cc.Name && strings.Contains(e.Note, "orphaned in silent: ") && strings.Contains(e.Note, "StatefulSet/left") {
					return nil
				}
			}
			return fmt.Errorf("none of %d events reports it", len(events.Items))
		})
	})

	t.Run("a member that answers again has orphaned children until they are deleted", func(t *testing.T) {
		if err := gate.Forward(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the condition names the children", func(ctx context.Context) error {
			c, err := profileCondition(ctx, "silent", v1alpha1.ConditionLeftovers)
			if err != nil || c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, ns+"/StatefulSet/left") {
				return fmt.Errorf("condition %+v: %w", c, err)
			}
			return nil
		})
		is := func(what string, right func(message string) bool) {
			t.Helper()
			eventually(t, what, func(ctx context.Context) error {
				c, err := profileCondition(ctx, "silent", v1alpha1.ConditionLeftovers)
				if err != nil {
					return err
				}
				message := ""
				if c != nil {
					message = c.Message
				}
				if !right(message) {
					return fmt.Errorf("condition %+v", c)
				}
				return nil
			})
		}
		server := lab.Members[two].Client
		set, service, budget := childrenOf(ns, "left")
		for _, child := range []client.Object{service, budget} {
			if err := server.Delete(t.Context(), child); err != nil {
				t.Errorf("%T was not there any more: %v", child, err)
			}
		}
		is("the condition names the remaining children", func(message string) bool {
			return strings.Contains(message, ns+"/StatefulSet/left") && !strings.Contains(message, ns+"/Service/left")
		})
		edit(t, two, set, func() { delete(set.Annotations, v1alpha1.AnnotationOwner) })
		heir := cache(ns, "left", "silent")
		heir.Spec.Takeover = v1alpha1.TakeoverAlways
		isReady(t, create(t, heir))
		is("the condition does not name the namespace: the children were taken over", func(message string) bool { return !strings.Contains(message, ns+"/") })
	})
}

func TestAbandon_RecordsOrphansUntilPlacedAgain(t *testing.T) {
	gate := behindAGate(t, "mute", lab.Members[two])
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, "lives-on")
	cc := create(t, cache(ns, "on", "mute", one))
	isReady(t, cc)
	before := versionsOf(t, two, ns, "on")
	gate.Close()
	inState(t, cc, "mute", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
	abandon(t, cc, "*")
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one} })
	becomes(t, cc, "remembers", func(cc *v1alpha1.CacheCluster) error {
		if len(cc.Status.Clusters) != 1 || len(cc.Status.Abandoned) != 1 || cc.Status.Abandoned[0].Name != "mute" || len(cc.Status.Abandoned[0].Children) != 3 {
			return fmt.Errorf("clusters %d, abandoned %+v", len(cc.Status.Clusters), cc.Status.Abandoned)
		}
		if err := has(cc, v1alpha1.ConditionAbandoned, metav1.ConditionTrue, v1alpha1.ReasonAbandoned); err != nil {
			return err
		}
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	})

	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{"mute", one} })
	becomes(t, cc, "is ready there again", func(cc *v1alpha1.CacheCluster) error {
		if len(cc.Status.Abandoned) > 0 {
			return fmt.Errorf("abandoned %+v", cc.Status.Abandoned)
		}
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	})
	for kind, version := range versionsOf(t, two, ns, "on") {
		if uid, _, _ := strings.Cut(before[kind], "/"); !strings.HasPrefix(version, uid+"/") {
			t.Errorf("%s was %s and is %s: it should have been taken up again", kind, before[kind], version)
		}
	}
}

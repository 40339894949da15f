package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// The goals are 15 s and 5 s. What is measured is logged; only far more fails, since a
// busy machine takes longer.
const noticed, landed = time.Minute, 30 * time.Second

func TestMemberReturn_PendingChangesAreApplied(t *testing.T) {
	gate := behindAGate(t, "returns", lab.Members[two])
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, "returns")
	const caches = 10
	var all []*v1alpha1.CacheCluster
	for n := range caches {
		all = append(all, create(t, cache(ns, fmt.Sprintf("c%d", n), "returns", one)))
	}
	for _, cc := range all {
		isReady(t, cc)
	}

	start := time.Now()
	if err := gate.Swallow(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, cc := range all {
		becomes(t, cc, "reports an unknown state", func(cc *v1alpha1.CacheCluster) error {
			return has(cc, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable)
		})
	}
	took := time.Since(start)
	t.Logf("a member that hangs: %d CacheClusters said so after %s", caches, took)
	if took > noticed {
		t.Errorf("that took more than %s", noticed)
	}

	for _, cc := range all {
		change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](5) })
		inState(t, cc, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	}
	start = time.Now()
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, cc := range all {
		eventually(t, cc.Name+" has five replicas in the member that is back", func(ctx context.Context) error {
			var set appsv1.StatefulSet
			if err := lab.Members[two].Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: cc.Name}, &set); err != nil {
				return err
			}
			if ptr.Deref(set.Spec.Replicas, 0) != 5 {
				return fmt.Errorf("it has %d", ptr.Deref(set.Spec.Replicas, 0))
			}
			return nil
		})
	}
	took = time.Since(start)
	t.Logf("back: the pending work of %d CacheClusters landed after %s", caches, took)
	if took > landed {
		t.Errorf("that took more than %s", landed)
	}
}

func TestCredentialRotation_CorrectsDriftMeanwhile(t *testing.T) {
	gate := behindAGate(t, "turns", lab.Members[two])
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, "turns")
	cc := create(t, cache(ns, "turned", "turns"))
	isReady(t, cc)
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: "turns-kubeconfig"}
	for i := range 5 {
		if err := lab.Hub.Client.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		service := childKinds(ns, "turned")[0]
		reload(t, lab.Members[two].Client, service)
		// The same credential in other words is a new one to the hub.
		secret.Data[v1alpha1.CredentialKey] = fmt.Appendf(secret.Data[v1alpha1.CredentialKey], "\n# %d\n", i)
		if err := lab.Hub.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		// At five moments of it.
		select {
		case <-time.After(time.Duration(i) * 40 * time.Millisecond):
		case <-t.Context().Done():
		}
		if err := lab.Members[two].Client.Delete(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		uid := service.GetUID()
		eventually(t, "the Service is there again", func(ctx context.Context) error {
			if err := lab.Members[two].Client.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
				return err
			}
			if service.GetUID() == uid {
				return fmt.Errorf("it is the old one")
			}
			return nil
		})
	}
	isReady(t, cc)
	becomes(t, cc, "counts each", func(cc *v1alpha1.CacheCluster) error {
		if n := countOf(t, cc, "turns"); n != 5 {
			return fmt.Errorf("%d drifts were corrected", n)
		}
		return nil
	})
}

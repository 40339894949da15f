package integration

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// behindAGate joins a member whose address is a gate in front of a real member. No other
// test uses that member's children of the same name.
func behindAGate(t *testing.T, name string, behind *harness.Member) *harness.Gate {
	t.Helper()
	address, err := url.Parse(behind.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := harness.NewGate(t.Context(), address.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + gate.Address(), CertificateAuthorityData: behind.Config.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: behind.Config.CertData, ClientKeyData: behind.Config.KeyData}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.InventoryNamespace, Name: name + "-kubeconfig", Labels: map[string]string{v1alpha1.LabelCredentialOf: name}},
		Data:       map[string][]byte{v1alpha1.CredentialKey: kubeconfig},
	}
	profile := &clusterinventory.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.InventoryNamespace, Name: name}}
	profile.Spec.ClusterManager.Name = "test"
	mustCreate(t, lab.Hub, secret)
	mustCreate(t, lab.Hub, profile)
	t.Cleanup(func() {
		for _, err := range []error{lab.Hub.Client.Delete(context.Background(), profile), lab.Hub.Client.Delete(context.Background(), secret)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return gate
}

func reachable(t *testing.T, name string, want metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is reachable: %s (%s)", name, want, reason), func(ctx context.Context) error {
		var profile clusterinventory.ClusterProfile
		if err := lab.Hub.Client.Get(ctx, types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: name}, &profile); err != nil {
			return err
		}
		c := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable)
		if c == nil || c.Status != want || c.Reason != reason {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// Not parallel: it starts the manager again while two members are unreachable.
func TestUnreachableMembers_DoNotDelayOthersAndCatchUp(t *testing.T) {
	closed, hole := behindAGate(t, "closed", lab.Members[two]), behindAGate(t, "hole", lab.Members[two])
	if err := hole.Swallow(t.Context()); err != nil {
		t.Fatal(err)
	}
	lab.restartManager(t)
	ns := namespace(t, "away")
	first := create(t, cache(ns, "first", "closed", "hole", one))
	second := create(t, cache(ns, "second", "hole", one))
	for _, cc := range []*v1alpha1.CacheCluster{first, second} {
		inState(t, cc, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	}
	for name, says := range map[string]string{"closed": "refuses connections", "hole": "did not answer in time"} {
		reachable(t, name, metav1.ConditionFalse, v1alpha1.ReasonProbeFailed)
		entry := inState(t, first, name, v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
		contains(t, name+"'s message", entry.Message, says)
		if entry.Since.IsZero() || entry.Class != v1alpha1.ClassUnreachable || entry.Hint == "" {
			t.Errorf("%s: since %v, class %q, hint %q", name, entry.Since, entry.Class, entry.Hint)
		}
	}
	becomes(t, first, "knows that it does not know", func(cc *v1alpha1.CacheCluster) error {
		if cc.Status.Members != "1/3" {
			return fmt.Errorf("members %s", cc.Status.Members)
		}
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable)
	})

	t.Run("work in the others goes on", func(t *testing.T) {
		if err := lab.Members[one].Client.Delete(t.Context(), childKinds(ns, "first")[0]); err != nil {
			t.Fatal(err)
		}
		becomes(t, first, "reports the correction", func(cc *v1alpha1.CacheCluster) error {
			if n := countOf(t, cc, one); n != 1 {
				return fmt.Errorf("%d drifts were corrected", n)
			}
			return nil
		})
	})

	t.Run("one that comes is served", func(t *testing.T) {
		if err := closed.Forward(t.Context()); err != nil {
			t.Fatal(err)
		}
		reachable(t, "closed", metav1.ConditionTrue, v1alpha1.ReasonReachable)
		inState(t, first, "closed", v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
		closed.Close()
		change(t, first, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one} })
	})

	t.Run("one that stops being a hole is served, and one that becomes one is not called ready", func(t *testing.T) {
		if err := hole.Forward(t.Context()); err != nil {
			t.Fatal(err)
		}
		isReady(t, second)
		if err := hole.Swallow(t.Context()); err != nil {
			t.Fatal(err)
		}
		inState(t, second, "hole", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
		becomes(t, second, "is not ready", func(cc *v1alpha1.CacheCluster) error {
			return has(cc, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable)
		})
		change(t, second, func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = nil; cc.Spec.Version = "1.6.39" })
		inState(t, second, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
		inState(t, second, "hole", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
	})

	t.Run("a deletion waits for an unreachable member, reports it, and ends when the member answers", func(t *testing.T) {
		if err := lab.Hub.Client.Delete(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		gone(t, one, ns, "second")
		becomes(t, second, "waits for the member", func(cc *v1alpha1.CacheCluster) error {
			entry, err := statusOf(cc, "hole")
			if err != nil {
				return err
			}
			if entry.State != v1alpha1.MemberDeleting || entry.Reason != v1alpha1.ReasonMemberUnreachable || len(cc.Status.Clusters) != 1 {
				return fmt.Errorf("%s (%s) among %d entries", entry.State, entry.Reason, len(cc.Status.Clusters))
			}
			return nil
		})
		if err := hole.Forward(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone(t, two, ns, "second")
		if err := closed.Forward(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone(t, two, ns, "first")
	})
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
)

// dead are members that never answered: one refuses connections. The other gets no
// packet, since its address is reserved (RFC 5737). Both look the same from a pod of the
// hub and from this machine.
var dead = map[string]string{
	"dead-refusing": "https://127.0.0.1:1",
	"dead-silent":   "https://192.0.2.1:6443",
}

// joinDead writes what `join` writes, which itself refuses a member that is unreachable.
func joinDead(ctx context.Context, name, server string) {
	GinkgoHelper()
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: none}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, server)
	place := metav1.ObjectMeta{Namespace: v1alpha1.InventoryNamespace}
	secret := &corev1.Secret{ObjectMeta: place, StringData: map[string]string{v1alpha1.CredentialKey: kubeconfig}}
	secret.Name, secret.Labels = name+"-kubeconfig", map[string]string{v1alpha1.LabelCredentialOf: name}
	Expect(lab.hub.Create(ctx, secret)).To(Succeed())
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: place, Spec: inventoryv1alpha1.ClusterProfileSpec{
		DisplayName: name, ClusterManager: inventoryv1alpha1.ClusterManager{Name: membership.ClusterManager},
	}}
	profile.Name, profile.Labels = name, map[string]string{inventoryv1alpha1.LabelClusterManagerKey: membership.ClusterManager}
	Expect(lab.hub.Create(ctx, profile)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		for _, o := range []client.Object{secret, profile} {
			Expect(client.IgnoreNotFound(lab.hub.Delete(ctx, o))).To(Succeed())
		}
	})
}

var _ = Describe("members that are unreachable from the start", Ordered, func() {
	const name = "cache"
	var ns string

	BeforeAll(func(ctx SpecContext) {
		// The namespace comes first, since it is removed last: its cache may wait for the dead
		// members.
		ns = newNamespace(ctx)
		for name, server := range dead {
			joinDead(ctx, name, server)
		}
		By("starting the hub manager with them in the inventory")
		lab.stopManager(ctx)
		lab.startManager(ctx)
	})

	It("delay neither the hub manager nor the other members", func(ctx SpecContext) {
		// Everywhere never gets ready, which is what the exit code says.
		out := lab.apply(ctx, manifest(ns, name, "replicas: 2\n"+everywhere), "--timeout", "15s")
		Expect(out).To(exitWith(3))
		Expect(out.lines()[len(out.lines())-1]).To(Equal("status: progressing -> not ready"))
		settled(ctx, ns, name, 2)
	})

	It("are reported by name, with the reason and since when, and without figures", func(ctx SpecContext) {
		for member := range dead {
			Eventually(ctx, reachable(member)).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonProbeFailed)))
			Eventually(ctx, func(g Gomega) {
				of := entry(getCache(ctx, g, ns, name), member)
				g.Expect(of).NotTo(BeNil())
				g.Expect(of.State).To(Equal(v1alpha1.MemberUnreachable))
				g.Expect(of.Class).To(Equal(v1alpha1.ClassUnreachable))
				g.Expect(of.Reason).To(Equal(v1alpha1.ReasonMemberUnreachable))
				g.Expect(of.Message).NotTo(BeEmpty())
				g.Expect(of.Since).NotTo(BeNil())
				g.Expect(of.ReadyReplicas).To(BeZero())
			}).Should(Succeed())
		}
		cc := getCache(ctx, Default, ns, name)
		Expect(cc.Status.Members).To(Equal("3/5"))
		Expect(condition(cc, v1alpha1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonMembersUnreachable), HaveField("Message", ContainSubstring("dead-refusing"))))
		out := lab.cli(ctx, "status", name, "-n", ns)
		Expect(out).To(succeed())
		Expect(out.stdout).To(And(MatchRegexp(`(?m)^dead-refusing +Unreachable +0/2 .*MemberUnreachable`), MatchRegexp(`(?m)^member-1 +Ready +2/2`)))
		unmoved(ctx, ns)
	})

	It("do not prevent corrections in the other members", func(ctx SpecContext) {
		m := lab.member("member-1")
		before := readChildren(ctx, Default, m, ns).services[name]
		Expect(m.Delete(ctx, &before)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			now := readChildren(ctx, g, m, ns)
			g.Expect(now.services).To(HaveKey(name))
			g.Expect(now.services[name].UID).NotTo(Equal(before.UID))
		}).Should(Succeed())
	})

	It("cannot leave by mistake while caches are placed there", func(ctx SpecContext) {
		out := lab.cli(ctx, "leave", "dead-silent")
		Expect(out).To(exitWith(4))
		Expect(out.stderr).To(And(ContainSubstring(ns+"/"+name), ContainSubstring("--abandon")))
	})

	It("keep a deletion visible, without delaying the others, until they are abandoned", func(ctx SpecContext) {
		Expect(lab.kubectl(ctx, "--context", "hub", "-n", ns, "delete", "cc", name, "--wait=false")).To(succeed())
		for _, m := range lab.members {
			Eventually(ctx, func(g Gomega) { g.Expect(readChildren(ctx, g, m, ns).versions()).To(BeEmpty()) }).Should(Succeed(), m.Name)
		}
		Eventually(ctx, func(g Gomega) {
			cc := getCache(ctx, g, ns, name)
			g.Expect(cc.DeletionTimestamp).NotTo(BeNil())
			var left []string
			for _, c := range cc.Status.Clusters {
				left = append(left, c.Name)
				g.Expect(c.State).To(Equal(v1alpha1.MemberDeleting))
			}
			g.Expect(left).To(ConsistOf("dead-refusing", "dead-silent"))
			g.Expect(condition(cc, v1alpha1.ConditionReady)).To(And(HaveField("Reason", v1alpha1.ReasonDeleting), HaveField("Status", metav1.ConditionFalse)))
		}).Should(Succeed())

		for member := range dead {
			Expect(lab.cli(ctx, "leave", member, "--abandon")).To(succeed())
		}
		Eventually(ctx, func(g Gomega) {
			g.Expect(client.IgnoreNotFound(lab.hub.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &v1alpha1.CacheCluster{}))).To(Succeed())
			var left v1alpha1.CacheClusterList
			g.Expect(lab.hub.List(ctx, &left, client.InNamespace(ns))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty())
		}).Should(Succeed())
	})
})

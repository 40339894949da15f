//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var _ = Describe("scaling", Ordered, func() {
	const name = "scaled"
	var ns string

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 1\n"+inLab))).To(succeed())
	})

	scale := func(ctx SpecContext, replicas string) {
		GinkgoHelper()
		Expect(lab.kubectl(ctx, "--context", "hub", "-n", ns, "scale", "cc", name, "--replicas="+replicas)).To(succeed())
	}

	It("reaches every member through the scale subresource", func(ctx SpecContext) {
		scale(ctx, "3")
		settled(ctx, ns, name, 3)
		cc := getCache(ctx, Default, ns, name)
		Expect(cc.Status.Replicas).To(Equal(int32(9)))
		Expect(cc.Status.ReadyReplicas).To(Equal(int32(9)))
	})

	It("does not count as drift", func(ctx SpecContext) {
		for _, member := range memberNames {
			Expect(entry(getCache(ctx, Default, ns, name), member).LastDrift).To(BeNil(), member)
		}
	})

	It("by kubectl is not undone by an apply of the old file, unless --force-conflicts asks for it", func(ctx SpecContext) {
		file := manifest(ns, name, "replicas: 2\n"+inLab)
		out := lab.apply(ctx, file)
		Expect(out).To(exitWith(2))
		Expect(out.stderr).To(And(ContainSubstring("spec.replicas"), ContainSubstring("kubectl"), ContainSubstring("--force-conflicts")))
		settled(ctx, ns, name, 3)

		out = lab.apply(ctx, file, "--force-conflicts")
		Expect(out).To(succeed())
		Expect(out.lines()).To(ContainElement("reconcile: updated stateful workload"))
		settled(ctx, ns, name, 2)
	})

	It("to 0 stops every pod and keeps the objects", func(ctx SpecContext) {
		before := versions(ctx, ns)
		scale(ctx, "0")
		settled(ctx, ns, name, 0)
		cc := getCache(ctx, Default, ns, name)
		Expect(condition(cc, v1alpha1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
		after := versions(ctx, ns)
		for _, member := range memberNames {
			Expect(after[member]).To(HaveLen(len(before[member])))
			Expect(after[member]["Service/"+name]).To(Equal(before[member]["Service/"+name]))
			Expect(entry(cc, member).Reason).To(Equal(v1alpha1.ReasonScaledToZero))
		}
	})
})

var _ = Describe("placement", Ordered, func() {
	const name = "placed"
	var ns string

	// holds asserts that exactly these members have children.
	holds := func(ctx SpecContext, members ...string) {
		GinkgoHelper()
		settled(ctx, ns, name, 1, members...)
		Eventually(ctx, func(g Gomega) {
			var holding []string
			for _, m := range lab.members {
				if len(readChildren(ctx, g, m, ns).versions()) > 0 {
					holding = append(holding, m.Name)
				}
			}
			g.Expect(holding).To(Equal(members))
			var named []string
			for _, c := range getCache(ctx, g, ns, name).Status.Clusters {
				named = append(named, c.Name)
			}
			g.Expect(named).To(Equal(members))
		}).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 1\n"+inLab))).To(succeed())
		holds(ctx, memberNames...)
	})

	It("by name removes the children of members that are not named, and keeps the others unchanged", func(ctx SpecContext) {
		before := versions(ctx, ns)
		out := lab.apply(ctx, manifest(ns, name, "replicas: 1\nplacement: {clusters: [member-3, member-1]}\n"))
		Expect(out).To(succeed())
		Expect(out.lines()).To(ContainElement("reconcile: updated placement (removed member-2)"))
		holds(ctx, "member-1", "member-3")
		after := versions(ctx, ns)
		for _, member := range []string{"member-1", "member-3"} {
			Expect(after[member]).To(Equal(before[member]))
		}
	})

	It("by label places the cache in the members that have it", func(ctx SpecContext) {
		out := lab.apply(ctx, manifest(ns, name, "replicas: 1\nplacement: {clusterSelector: {matchExpressions: [{key: "+v1alpha1.LabelRegion+", operator: In, values: [us, ap]}]}}\n"))
		Expect(out).To(succeed())
		Expect(out.lines()).To(ContainElement("reconcile: updated placement (added member-2; removed member-1)"))
		holds(ctx, "member-2", "member-3")
	})

	It("keeps the namespace of a member that is no longer placed, with the objects of other owners", func(ctx SpecContext) {
		m := lab.member("member-3")
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "of-another-owner"}}
		Expect(m.Create(ctx, other)).To(Succeed())
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 1\nplacement: {clusters: [member-2]}\n"))).To(succeed())
		holds(ctx, "member-2")
		Expect(m.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		var namespace corev1.Namespace
		Expect(m.Get(ctx, client.ObjectKey{Name: ns}, &namespace)).To(Succeed())
		Expect(namespace.Status.Phase).To(Equal(corev1.NamespaceActive))
	})
})

var _ = Describe("overrides", func() {
	It("change the template in the members that they name or select; the last one applies", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		const name = "overridden"
		Expect(lab.apply(ctx, manifest(ns, name, `
replicas: 2
memory: 64Mi
service: {type: ClusterIP}
exporter: {enabled: true}
`+inLab+`overrides:
- clusterSelector: {matchLabels: {tier: lab}}
  memory: 128Mi
- clusters: [member-2]
  replicas: 1
  memory: 32Mi
  memcached: {maxConnections: 64}
`))).To(succeed())

		for member, want := range map[string]struct {
			replicas int32
			args     []string
			memory   string
		}{
			"member-1": {2, []string{"-m", "128", "-I", "1m", "-c", "1024"}, "154Mi"},
			"member-2": {1, []string{"-m", "32", "-I", "1m", "-c", "64"}, "38Mi"},
			"member-3": {2, []string{"-m", "128", "-I", "1m", "-c", "1024"}, "154Mi"},
		} {
			settled(ctx, ns, name, want.replicas, member)
			c := readChildren(ctx, Default, lab.member(member), ns)
			containers := c.sets[name].Spec.Template.Spec.Containers
			Expect(containers).To(HaveLen(2), member)
			Expect(containers[0].Args).To(Equal(want.args), member)
			Expect(containers[0].Resources.Limits.Memory().String()).To(Equal(want.memory), member)
			Expect(containers[1].Ports[0].ContainerPort).To(Equal(int32(9150)), member)
			Expect(c.services).To(And(HaveLen(2), HaveKey(name), HaveKey(name+"-client")), member)
			Expect(c.services[name+"-client"].Spec.ClusterIP).NotTo(Or(BeEmpty(), Equal(corev1.ClusterIPNone)), member)
		}

		By("removing the second Service when the spec no longer asks for it")
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 2\nexporter: {enabled: true}\n"+inLab))).To(succeed())
		settled(ctx, ns, name, 2)
		for _, m := range lab.members {
			Eventually(ctx, func(g Gomega) {
				g.Expect(readChildren(ctx, g, m, ns).services).To(And(HaveLen(1), HaveKey(name)), m.Name)
			}).Should(Succeed())
		}
	})
})

var _ = Describe("deletion", func() {
	It("leaves nothing in the members but the namespace, and nothing on the hub", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		const name, kept = "deleted", "kept"
		spec := "replicas: 1\nservice: {type: ClusterIP}\n" + inLab
		Expect(lab.apply(ctx, manifest(ns, name, spec)+"---\n"+manifest(ns, kept, spec))).To(succeed())
		settled(ctx, ns, kept, 1)
		settled(ctx, ns, name, 1)
		before := versions(ctx, ns)

		Expect(lab.kubectl(ctx, "--context", "hub", "-n", ns, "delete", "cc", name, "--timeout=2m")).To(succeed())

		// It is gone only after its children.
		for _, m := range lab.members {
			want := before[m.Name]
			for child := range want {
				if child == "StatefulSet/"+name || child == "Service/"+name || child == "Service/"+name+"-client" || child == "PodDisruptionBudget/"+name {
					delete(want, child)
				}
			}
			Expect(want).To(HaveLen(4))
			Expect(readChildren(ctx, Default, m, ns).versions()).To(Equal(want), "another cache in the same namespace of %s", m.Name)
			Eventually(ctx, func(g Gomega) {
				var pods corev1.PodList
				g.Expect(m.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelCacheCluster: name})).To(Succeed())
				g.Expect(pods.Items).To(BeEmpty(), m.Name)
			}).Should(Succeed())
			var namespace corev1.Namespace
			Expect(m.Get(ctx, client.ObjectKey{Name: ns}, &namespace)).To(Succeed())
			Expect(namespace.Status.Phase).To(Equal(corev1.NamespaceActive))
		}
		var left v1alpha1.MemberCacheList
		Expect(lab.hub.List(ctx, &left, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelCacheCluster: name})).To(Succeed())
		Expect(left.Items).To(BeEmpty())
	})
})

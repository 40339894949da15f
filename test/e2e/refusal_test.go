//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var _ = Describe("bad input", func() {
	DescribeTable("is refused before anything is applied, with the field, the value and what to do",
		func(ctx SpecContext, name, spec string, says ...string) {
			ns := newNamespace(ctx)
			// A good one in the same file is not applied either.
			out := lab.apply(ctx, manifest(ns, "good", everywhere)+"---\n"+manifest(ns, name, spec+everywhere))
			Expect(out).To(exitWith(2))
			for _, text := range says {
				Expect(out.stderr).To(ContainSubstring(text))
			}
			Expect(out.stdout).To(BeEmpty())
			var all v1alpha1.CacheClusterList
			Expect(lab.hub.List(ctx, &all, client.InNamespace(ns))).To(Succeed())
			Expect(all.Items).To(BeEmpty())
			for _, m := range lab.members {
				Expect(client.IgnoreNotFound(m.Get(ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{}))).To(Succeed())
				Expect(readChildren(ctx, Default, m, ns).versions()).To(BeEmpty())
			}
		},
		Entry("an unknown field", "bad", "replica: 3\n", "spec.replica:", "correct its spelling"),
		Entry("an unknown field further down", "bad", "memcached: {maxItemSiez: 1Mi}\n", "spec.memcached.maxItemSiez:", "correct its spelling"),
		Entry("the same field twice", "bad", "replicas: 1\nreplicas: 2\n", "replicas"),
		Entry("replicas below 0", "bad", "replicas: -1\n", "spec.replicas:", "-1", "must be 0 or more"),
		Entry("replicas that are no number", "bad", "replicas: many\n", "spec.replicas"),
		Entry("memory that is no quantity", "bad", "memory: lots\n", "spec.memory:", "lots", "such as 64Mi"),
		Entry("memory without its unit", "bad", "memory: 64\n", "spec.memory:", "64", "at least 8Mi"),
		Entry("an item larger than half of the memory", "bad", "memory: 64Mi\nmemcached: {maxItemSize: 33Mi}\n", "spec.memcached.maxItemSize:", "at most half of memory", "lower maxItemSize or raise memory"),
		Entry("an argument that is a field", "bad", "memcached: {args: [-m, \"512\"]}\n", "spec.memcached.args:", "use memory"),
		Entry("an engine that does not exist", "bad", "engine: Memcache\n", "spec.engine:", "Memcache", "Memcached"),
		Entry("a name that is too long for its children", strings.Repeat("n", 53), "", strings.Repeat("n", 53), "metadata.name", "at most 52"),
		Entry("a name that no Service can have", "7up", "", "7up", "metadata.name", "must begin with a letter"),
	)

	It("without a placement is refused, because there is no default", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		out := lab.apply(ctx, manifest(ns, "nowhere", "replicas: 1\n"))
		Expect(out).To(exitWith(2))
		Expect(out.stderr).To(ContainSubstring("spec.placement"))
		out = lab.apply(ctx, manifest(ns, "nowhere", "replicas: 1\nplacement: {}\n"))
		Expect(out).To(exitWith(2))
		Expect(out.stderr).To(And(ContainSubstring("spec.placement"), ContainSubstring("clusterSelector {} selects every member")))
	})

	It("is refused as a missing file, invalid YAML, or another kind", func(ctx SpecContext) {
		Expect(lab.cli(ctx, "apply", "no-such-file.yaml")).To(exitWith(2))
		Expect(lab.apply(ctx, "kind: [")).To(exitWith(2))
		out := lab.apply(ctx, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
		Expect(out).To(exitWith(2))
		Expect(out.stderr).To(And(ContainSubstring("ConfigMap"), ContainSubstring("use kubectl")))
		Expect(lab.cli(ctx, "apply")).To(exitWith(2))
		Expect(lab.cli(ctx, "get", "--no-such-flag")).To(exitWith(2))
	})

	It("with a namespace that does not exist is refused, and accepted with --create-namespace", func(ctx SpecContext) {
		const ns = "e2e-created"
		DeferCleanup(removeNamespace, ns)
		file := manifest(ns, "cache", "replicas: 1\n"+inLab)
		out := lab.apply(ctx, file)
		Expect(out).To(exitWith(2))
		Expect(out.stderr).To(And(ContainSubstring(ns), ContainSubstring("--create-namespace")))
		Expect(lab.apply(ctx, file, "--create-namespace")).To(succeed())
		settled(ctx, ns, "cache", 1)
	})
})

// unmoved asserts that no client writes to the cache or its parts for a while. A blocked
// cache must wait, not spin.
func unmoved(ctx context.Context, ns string) {
	GinkgoHelper()
	look := func() map[string]string {
		var ccs v1alpha1.CacheClusterList
		var mcs v1alpha1.MemberCacheList
		seen := map[string]string{}
		Expect(lab.hub.List(ctx, &ccs, client.InNamespace(ns))).To(Succeed())
		Expect(lab.hub.List(ctx, &mcs, client.InNamespace(ns))).To(Succeed())
		for _, o := range ccs.Items {
			seen[o.Name] = o.ResourceVersion
		}
		for _, o := range mcs.Items {
			seen[o.Name] = o.ResourceVersion
		}
		return seen
	}
	Consistently(ctx, look).WithTimeout(3 * time.Second).Should(Equal(look()))
}

var _ = Describe("input that only the hub can refuse", func() {
	const name = "cache"

	It("a member that does not exist: the others get the cache, and the field and a hint are named", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		out := lab.apply(ctx, manifest(ns, name, "replicas: 1\nplacement: {clusters: [member-1, nowhere]}\n"))
		Expect(out).To(exitWith(4))
		Expect(out.stdout).To(And(ContainSubstring(`spec.placement.clusters[1]: "nowhere"`), ContainSubstring("hint: "), ContainSubstring("reconcile-lab join nowhere")))
		Expect(out.lines()[len(out.lines())-1]).To(Equal("status: progressing -> not ready"))
		settled(ctx, ns, name, 1, "member-1")
		cc := getCache(ctx, Default, ns, name)
		Expect(condition(cc, v1alpha1.ConditionPlaced)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonUnknownMembers)))
		Expect(condition(cc, v1alpha1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(cc.Status.Members).To(Equal("1/2"))
		unmoved(ctx, ns)
	})

	It("a placement that matches nothing", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		out := lab.apply(ctx, manifest(ns, name, "replicas: 1\nplacement: {clusterSelector: {matchLabels: {"+v1alpha1.LabelRegion+": mars}}}\n"))
		Expect(out).To(exitWith(4))
		Expect(out.stdout).To(And(ContainSubstring("NoMatchingMembers"), ContainSubstring("spec.placement.clusterSelector"), ContainSubstring("mars")))
		cc := getCache(ctx, Default, ns, name)
		Expect(cc.Status.Clusters).To(BeEmpty())
		Expect(condition(cc, v1alpha1.ConditionReady)).To(HaveField("Status", metav1.ConditionFalse))
		unmoved(ctx, ns)
	})

	It("another owner's StatefulSet: it stays unchanged, and the cache is created once it is deleted", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		m := lab.member("member-2")
		Expect(m.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
		theirs := foreignSet(ns, name)
		Expect(m.Create(ctx, theirs)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(m.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
			g.Expect(theirs.Status.ObservedGeneration).To(Equal(theirs.Generation))
		}).Should(Succeed())

		out := lab.apply(ctx, manifest(ns, name, "replicas: 1\n"+inLab))
		Expect(out).To(exitWith(4))
		Expect(out.stdout).To(And(MatchRegexp(`(?m)^member-2: Blocked 0/1 ObjectOfAnother`), ContainSubstring("StatefulSet/"+name), ContainSubstring("hint: ")))
		settled(ctx, ns, name, 1, "member-1", "member-3")
		Expect(readChildren(ctx, Default, m, ns).versions()).To(Equal(map[string]string{
			"StatefulSet/" + name: string(theirs.UID) + " " + theirs.ResourceVersion,
		}), "half of the cache was applied")
		cc := getCache(ctx, Default, ns, name)
		Expect(entry(cc, "member-2")).To(HaveField("Class", v1alpha1.ClassBlocked))
		unmoved(ctx, ns)

		Expect(m.Delete(ctx, theirs)).To(Succeed())
		settled(ctx, ns, name, 1)
	})
})

func foreignSet(ns, name string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "theirs"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs:1"}}},
			},
		},
	}
}

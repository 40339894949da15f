//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// drift is one thing that another client does by hand in a member.
type drift struct {
	what   string
	change func(ctx context.Context, m *testCluster, ns string)
	// right is polled until it passes.
	right func(g Gomega, before, now children)
	// The report of the hub; no fields for a deletion.
	object, field, manager string
}

const driftCache = "drifting"

// object is what names one in a patch or a deletion.
func object(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func patch(ctx context.Context, m *testCluster, object client.Object, patch string) {
	GinkgoHelper()
	Expect(m.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("other-client"))).To(Succeed())
}

var drifts = []drift{
	{
		what: "replicas, with kubectl scale",
		change: func(ctx context.Context, m *testCluster, ns string) {
			Expect(lab.kubectl(ctx, "--context", m.Context, "-n", ns, "scale", "statefulset", driftCache, "--replicas=5")).To(succeed())
		},
		right: func(g Gomega, _, now children) {
			g.Expect(*now.sets[driftCache].Spec.Replicas).To(Equal(int32(2)))
		},
		object: "StatefulSet/drifting", field: "spec.replicas", manager: "kubectl",
	},
	{
		// Of a scale to 0 the API server keeps no trace in managedFields.
		what: "replicas, with kubectl scale to 0",
		change: func(ctx context.Context, m *testCluster, ns string) {
			Expect(lab.kubectl(ctx, "--context", m.Context, "-n", ns, "scale", "statefulset", driftCache, "--replicas=0")).To(succeed())
		},
		right: func(g Gomega, _, now children) {
			g.Expect(*now.sets[driftCache].Spec.Replicas).To(Equal(int32(2)))
		},
		object: "StatefulSet/drifting", field: "spec.replicas", manager: "unknown",
	},
	{
		what: "the image",
		change: func(ctx context.Context, m *testCluster, ns string) {
			patch(ctx, m, &appsv1.StatefulSet{ObjectMeta: object(ns, driftCache)}, `{"spec":{"template":{"spec":{"containers":[{"name":"memcached","image":"memcached:1.5"}]}}}}`)
		},
		right: func(g Gomega, _, now children) {
			g.Expect(now.sets[driftCache].Spec.Template.Spec.Containers[0].Image).To(Equal("memcached:1.6"))
		},
		object: "StatefulSet/drifting", field: `spec.template.spec.containers[name="memcached"].image`, manager: "other-client",
	},
	{
		what: "a label of the Service",
		change: func(ctx context.Context, m *testCluster, ns string) {
			patch(ctx, m, &corev1.Service{ObjectMeta: object(ns, driftCache)}, `{"metadata":{"labels":{"app.kubernetes.io/instance":"another"}}}`)
		},
		right: func(g Gomega, _, now children) {
			g.Expect(now.services[driftCache].Labels).To(HaveKeyWithValue(v1alpha1.LabelInstance, driftCache))
		},
		object: "Service/drifting", field: "metadata.labels.app.kubernetes.io/instance", manager: "other-client",
	},
	{
		// By it the child is watched, so the hub sees it no longer.
		what: "the label by which the StatefulSet is found",
		change: func(ctx context.Context, m *testCluster, ns string) {
			patch(ctx, m, &appsv1.StatefulSet{ObjectMeta: object(ns, driftCache)}, `{"metadata":{"labels":{"`+v1alpha1.LabelCacheCluster+`":null}}}`)
		},
		right: func(g Gomega, before, now children) {
			g.Expect(now.sets[driftCache].Labels).To(HaveKeyWithValue(v1alpha1.LabelCacheCluster, driftCache))
			g.Expect(now.sets[driftCache].UID).To(Equal(before.sets[driftCache].UID))
		},
		object: "StatefulSet/drifting", field: "metadata.labels." + v1alpha1.LabelCacheCluster, manager: "unknown",
	},
	{
		what: "the Service, deleted",
		change: func(ctx context.Context, m *testCluster, ns string) {
			Expect(m.Delete(ctx, &corev1.Service{ObjectMeta: object(ns, driftCache)})).To(Succeed())
		},
		right: func(g Gomega, before, now children) {
			g.Expect(now.services).To(HaveKey(driftCache))
			g.Expect(now.services[driftCache].UID).NotTo(Equal(before.services[driftCache].UID))
		},
		object: "Service/drifting", manager: "unknown",
	},
	{
		what: "the StatefulSet, deleted with its pods",
		change: func(ctx context.Context, m *testCluster, ns string) {
			Expect(m.Delete(ctx, &appsv1.StatefulSet{ObjectMeta: object(ns, driftCache)}, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		},
		right: func(g Gomega, before, now children) {
			g.Expect(now.sets).To(HaveKey(driftCache))
			g.Expect(now.sets[driftCache].UID).NotTo(Equal(before.sets[driftCache].UID))
		},
		object: "StatefulSet/drifting", manager: "unknown",
	},
}

var _ = Describe("drift in a member", Ordered, func() {
	var ns string

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(ns, driftCache, "replicas: 2\n"+inLab))).To(succeed())
	})

	for _, member := range memberNames {
		for _, d := range drifts {
			It(fmt.Sprintf("is corrected there, and only there: %s in %s", d.what, member), func(ctx SpecContext) {
				settled(ctx, ns, driftCache, 2)
				m := lab.member(member)
				was := entry(getCache(ctx, Default, ns, driftCache), member).LastDrift
				before, others := readChildren(ctx, Default, m, ns), versions(ctx, ns)

				d.change(ctx, m, ns)
				Eventually(ctx, func(g Gomega) { d.right(g, before, readChildren(ctx, g, m, ns)) }).Should(Succeed())

				By("reporting it on the hub")
				var now v1alpha1.Drift
				Eventually(ctx, func(g Gomega) {
					last := entry(getCache(ctx, g, ns, driftCache), member).LastDrift
					g.Expect(last).NotTo(BeNil())
					now = *last
					g.Expect(now.Object).To(Equal(d.object))
					g.Expect(now.Count).To(BeNumerically(">", counted(was)))
				}).Should(Succeed())
				Expect(now.Deleted).To(Equal(d.field == ""))
				Expect(now.Manager).To(Equal(d.manager))
				Expect(now.RepairedIn.Duration).To(BeNumerically(">", 0))
				if d.field != "" {
					Expect(now.Fields).To(Equal([]string{d.field}))
				}

				By("printing it with observe --once")
				out := lab.cli(ctx, "observe", driftCache, "--once", "-n", ns)
				Expect(out).To(succeed())
				line := out.lines()[len(out.lines())-1]
				Expect(line).To(MatchRegexp(`^drift detected and corrected in \S+  ` + member + " " + d.object + " "))
				Expect(line).To(MatchRegexp(regexp.QuoteMeta(d.object+" ") + d.words()))

				By("keeping the other members unchanged")
				settled(ctx, ns, driftCache, 2)
				after := versions(ctx, ns)
				delete(others, member)
				delete(after, member)
				Expect(after).To(Equal(others))
			})
		}
	}

	It("is printed by observe when it happens", func(ctx SpecContext) {
		settled(ctx, ns, driftCache, 2)
		observe := lab.begin("observe", driftCache, "-n", ns)
		DeferCleanup(func() { observe.Kill() })
		Eventually(observe.Out).Should(gbytes.Say(`member-3: Ready 2/2\n`))
		// What it said of the past ends here.
		Eventually(observe.Out).Should(gbytes.Say(`drift detected .* member-3 StatefulSet/drifting \(was deleted`))
		patch(ctx, lab.member("member-1"), &appsv1.StatefulSet{ObjectMeta: object(ns, driftCache)}, `{"spec":{"replicas":3}}`)
		Eventually(observe.Out).Should(gbytes.Say(`drift detected and corrected in \S+  member-1 StatefulSet/drifting spec.replicas 2 → \d+ \(was changed by other-client at `))
		Eventually(observe.Interrupt()).Should(gexec.Exit(130))
	})
})

func counted(d *v1alpha1.Drift) int64 {
	if d == nil {
		return 0
	}
	return d.Count
}

// words match the output of observe; between the field and its manager stand
// the values, where there are single ones.
func (d drift) words() string {
	words := regexp.QuoteMeta(d.field) + `( .* → .*)? \(was changed`
	if d.field == "" {
		words = `\(was deleted`
	}
	if d.manager != "unknown" {
		words += " by " + regexp.QuoteMeta(d.manager)
	}
	// The API server keeps no time of a deletion, a removed field, or a change through /scale.
	return words + "( at |; corrected at )"
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// newNamespace creates a namespace on the hub. It removes it in every cluster at the end of
// the spec, or of the container if called before all of its specs.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := "e2e-" + rand.String(6)
	Expect(lab.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	DeferCleanup(removeNamespace, ns)
	return ns
}

// removeNamespace deletes the caches first: a namespace that is deleted in a
// member would look like drift.
func removeNamespace(ctx context.Context, ns string) {
	GinkgoHelper()
	Expect(lab.hub.DeleteAllOf(ctx, &v1alpha1.CacheCluster{}, client.InNamespace(ns))).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		var left v1alpha1.CacheClusterList
		g.Expect(lab.hub.List(ctx, &left, client.InNamespace(ns))).To(Succeed())
		g.Expect(left.Items).To(BeEmpty())
	}).Should(Succeed())
	for _, c := range append([]*testCluster{lab.hub}, lab.members...) {
		Expect(client.IgnoreNotFound(c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))).To(Succeed())
	}
}

// manifest of a CacheCluster; spec is YAML that begins at the left margin.
func manifest(ns, name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: CacheCluster\nmetadata: {name: %s, namespace: %s}\nspec:\n  %s\n",
		v1alpha1.GroupVersion, name, ns, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// everywhere is the placement on all members.
const everywhere = "placement: {clusterSelector: {}}\n"

// inLab is a placement on the members of the lab only. Other members may have joined.
const inLab = "placement: {clusterSelector: {matchLabels: {tier: lab}}}\n"

func getCache(ctx context.Context, g Gomega, ns, name string) *v1alpha1.CacheCluster {
	cc := &v1alpha1.CacheCluster{}
	g.Expect(lab.hub.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, cc)).To(Succeed())
	return cc
}

// entry of a member in a CacheCluster's status, or nil.
func entry(cc *v1alpha1.CacheCluster, member string) *v1alpha1.ClusterStatus {
	for i := range cc.Status.Clusters {
		if cc.Status.Clusters[i].Name == member {
			return &cc.Status.Clusters[i]
		}
	}
	return nil
}

func condition(cc *v1alpha1.CacheCluster, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(cc.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// children are what a member has in a namespace; only the cache is there.
type children struct {
	sets     map[string]appsv1.StatefulSet
	services map[string]corev1.Service
	budgets  map[string]policyv1.PodDisruptionBudget
}

func readChildren(ctx context.Context, g Gomega, member *testCluster, ns string) children {
	var sets appsv1.StatefulSetList
	var services corev1.ServiceList
	var budgets policyv1.PodDisruptionBudgetList
	for _, list := range []client.ObjectList{&sets, &services, &budgets} {
		g.Expect(member.List(ctx, list, client.InNamespace(ns))).To(Succeed())
	}
	c := children{map[string]appsv1.StatefulSet{}, map[string]corev1.Service{}, map[string]policyv1.PodDisruptionBudget{}}
	for _, o := range sets.Items {
		c.sets[o.Name] = o
	}
	for _, o := range services.Items {
		c.services[o.Name] = o
	}
	for _, o := range budgets.Items {
		c.budgets[o.Name] = o
	}
	return c
}

// versions returns the UID and the resourceVersion of each child. They differ if a
// client wrote to a child in between.
func (c children) versions() map[string]string {
	versions := map[string]string{}
	add := func(kind string, o metav1.Object) {
		versions[kind+"/"+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
	}
	for _, o := range c.sets {
		add("StatefulSet", &o)
	}
	for _, o := range c.services {
		add("Service", &o)
	}
	for _, o := range c.budgets {
		add("PodDisruptionBudget", &o)
	}
	return versions
}

// versions of the children in each member.
func versions(ctx context.Context, ns string) map[string]map[string]string {
	GinkgoHelper()
	all := map[string]map[string]string{}
	for _, m := range lab.members {
		all[m.Name] = readChildren(ctx, Default, m, ns).versions()
	}
	return all
}

// settled waits until the given members, or all, have every pod of the cache and the hub
// reports it. No controller has anything left to write then.
func settled(ctx context.Context, ns, name string, replicas int32, members ...string) {
	GinkgoHelper()
	if len(members) == 0 {
		members = memberNames
	}
	Eventually(ctx, func(g Gomega) {
		cc := getCache(ctx, g, ns, name)
		g.Expect(cc.Status.ObservedGeneration).To(Equal(cc.Generation))
		for _, member := range members {
			of := entry(cc, member)
			g.Expect(of).NotTo(BeNil(), "%s has no entry", member)
			g.Expect(of.State).To(Equal(v1alpha1.MemberReady), "%s: %s", member, of.Message)
			g.Expect(of.ReadyReplicas).To(Equal(replicas), member)
			atRest(ctx, g, lab.member(member), ns, name, replicas)
		}
	}).Should(Succeed())
}

func atRest(ctx context.Context, g Gomega, member *testCluster, ns, name string, replicas int32) {
	c := readChildren(ctx, g, member, ns)
	g.Expect(c.sets).To(HaveKey(name), member.Name)
	set, budget := c.sets[name], c.budgets[name]
	g.Expect(*set.Spec.Replicas).To(Equal(replicas), member.Name)
	g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation), member.Name)
	for _, n := range []int32{set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas, set.Status.UpdatedReplicas, budget.Status.CurrentHealthy} {
		g.Expect(n).To(Equal(replicas), member.Name)
	}
	g.Expect(set.Status.UpdateRevision).To(Equal(set.Status.CurrentRevision), member.Name)
	var pods corev1.PodList
	g.Expect(member.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelCacheCluster: name})).To(Succeed())
	g.Expect(pods.Items).To(HaveLen(int(replicas)), member.Name)
}

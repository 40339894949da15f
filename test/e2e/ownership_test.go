//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const ownedCache = "owned"

// volumes makes a PersistentVolume for each pod's claim, since not every lab has a
// provisioner.
func volumes(ctx context.Context, m *testCluster, ns string, replicas int) {
	GinkgoHelper()
	directory := corev1.HostPathDirectoryOrCreate
	for n := range replicas {
		claim := fmt.Sprintf("data-%s-%d", ownedCache, n)
		pv := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + claim},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: ns, Name: claim},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
					Path: "/tmp/" + ns + "-" + claim, Type: &directory}},
			},
		}
		Expect(m.Create(ctx, pv)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(m.Delete(ctx, pv))).To(Succeed()) })
	}
}

// running are the pods of the cache and their claims, by name: UID, and how often
// their containers restarted.
func running(ctx context.Context, g Gomega, m *testCluster, ns string) map[string]string {
	found := map[string]string{}
	var pods corev1.PodList
	g.Expect(m.List(ctx, &pods, client.InNamespace(ns))).To(Succeed())
	for _, pod := range pods.Items {
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		found["pod "+pod.Name] = fmt.Sprintf("%s, %d restarts, going %t", pod.UID, restarts, pod.DeletionTimestamp != nil)
	}
	var claims corev1.PersistentVolumeClaimList
	g.Expect(m.List(ctx, &claims, client.InNamespace(ns))).To(Succeed())
	for _, claim := range claims.Items {
		found["claim "+claim.Name] = fmt.Sprintf("%s, %s, going %t", claim.UID, claim.Spec.Resources.Requests.Storage(), claim.DeletionTimestamp != nil)
	}
	return found
}

// adopted reports whether a StatefulSet controls every pod of the cache.
func adopted(ctx context.Context, g Gomega, m *testCluster, ns string) {
	set := readChildren(ctx, g, m, ns).sets[ownedCache]
	var pods corev1.PodList
	g.Expect(m.List(ctx, &pods, client.InNamespace(ns))).To(Succeed())
	for i := range pods.Items {
		g.Expect(metav1.IsControlledBy(&pods.Items[i], &set)).To(BeTrue(), pods.Items[i].Name)
	}
}

var _ = Describe("ownership", Ordered, func() {
	const member, replicas = "member-1", 2
	var (
		ns     string
		before map[string]string
	)
	spec := func(size, more string) string {
		return fmt.Sprintf("replicas: %d\nstorage: {size: %s, storageClassName: \"\"}\nplacement: {clusters: [%s]}\n%s", replicas, size, member, more)
	}

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		volumes(ctx, lab.member(member), ns, replicas)
		Expect(lab.apply(ctx, manifest(ns, ownedCache, spec("1Gi", "")))).To(succeed())
		settled(ctx, ns, ownedCache, replicas, member)
		before = running(ctx, Default, lab.member(member), ns)
		Expect(before).To(HaveLen(2 * replicas))
	})

	It("names a field that cannot change in place, with a hint", func(ctx SpecContext) {
		Expect(lab.apply(ctx, manifest(ns, ownedCache, spec("2Gi", "")), "--timeout", "20s")).NotTo(succeed())
		Eventually(ctx, func(g Gomega) {
			of := entry(getCache(ctx, g, ns, ownedCache), member)
			g.Expect(of).NotTo(BeNil())
			g.Expect(of.Reason).To(Equal(v1alpha1.ReasonImmutableField))
			g.Expect(of.Message).To(ContainSubstring(`spec.volumeClaimTemplates[name="data"].spec.resources.requests.storage cannot change from 1Gi to 2Gi`))
			g.Expect(of.Hint).To(ContainSubstring("spec.recreate: OrphanPods"))
		}).Should(Succeed())
		Expect(running(ctx, Default, lab.member(member), ns)).To(Equal(before))
	})

	It("recreates the StatefulSet around its running pods with OrphanPods, and keeps their claims", func(ctx SpecContext) {
		was := readChildren(ctx, Default, lab.member(member), ns).sets[ownedCache]
		Expect(lab.apply(ctx, manifest(ns, ownedCache, spec("2Gi", "recreate: OrphanPods\n")))).To(succeed())
		settled(ctx, ns, ownedCache, replicas, member)
		now := readChildren(ctx, Default, lab.member(member), ns).sets[ownedCache]
		Expect(now.UID).NotTo(Equal(was.UID))
		Expect(now.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
		Eventually(ctx, func(g Gomega) { adopted(ctx, g, lab.member(member), ns) }).Should(Succeed())
		Expect(running(ctx, Default, lab.member(member), ns)).To(Equal(before))
		Expect(entry(getCache(ctx, Default, ns, ownedCache), member).LastDrift).To(BeNil())
	})

	It("keeps orphaned children running, and takes them over again", func(ctx SpecContext) {
		Expect(lab.apply(ctx, manifest(ns, ownedCache, spec("2Gi", "deletion: {policy: Orphan}\n")))).To(succeed())
		was := readChildren(ctx, Default, lab.member(member), ns)
		Expect(lab.hub.Delete(ctx, &v1alpha1.CacheCluster{ObjectMeta: object(ns, ownedCache)})).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			var left v1alpha1.CacheClusterList
			g.Expect(lab.hub.List(ctx, &left, client.InNamespace(ns))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty())
		}).Should(Succeed())
		orphan := readChildren(ctx, Default, lab.member(member), ns)
		Expect(orphan.sets[ownedCache].UID).To(Equal(was.sets[ownedCache].UID))
		Expect(orphan.sets[ownedCache].Labels).NotTo(HaveKey(v1alpha1.LabelCacheCluster))
		Expect(orphan.services).To(HaveKey(ownedCache))
		Expect(running(ctx, Default, lab.member(member), ns)).To(Equal(before))

		By("taking them over with a new CacheCluster")
		Expect(lab.apply(ctx, manifest(ns, ownedCache, spec("2Gi", "takeover: IfMatching\n")))).To(succeed())
		settled(ctx, ns, ownedCache, replicas, member)
		now := readChildren(ctx, Default, lab.member(member), ns)
		Expect(now.sets[ownedCache].UID).To(Equal(was.sets[ownedCache].UID))
		Expect(now.sets[ownedCache].Generation).To(Equal(was.sets[ownedCache].Generation))
		Expect(running(ctx, Default, lab.member(member), ns)).To(Equal(before))
	})

	It("removes the pods and keeps the claims when the cache is deleted", func(ctx SpecContext) {
		Expect(lab.hub.Delete(ctx, &v1alpha1.CacheCluster{ObjectMeta: object(ns, ownedCache)})).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(readChildren(ctx, g, lab.member(member), ns).versions()).To(BeEmpty())
			left := running(ctx, g, lab.member(member), ns)
			g.Expect(left).To(HaveLen(replicas))
			for name, claim := range left {
				g.Expect(before).To(HaveKeyWithValue(name, claim))
			}
		}).Should(Succeed())
	})
})

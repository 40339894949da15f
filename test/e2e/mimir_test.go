//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The figures are those of Grafana Mimir's Helm chart for its large sizing. On
// kind the example's one override makes them small enough for a laptop.
var _ = Describe("the four caches of a Mimir installation", Ordered, func() {
	const ns = "mimir"

	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(removeNamespace, ns)
		// The metadata cache counts as available only after its pods were ready for a minute.
		Expect(lab.cli(ctx, "apply", "--create-namespace", "--timeout", "10m", "examples/mimir-caches.yaml")).To(succeed())
	})

	for _, want := range []struct {
		name            string
		replicas        int32
		megabytes       string
		item            string
		memory          string
		extended        string
		minReadySeconds int32
	}{
		{"chunks-cache", 4, "8192", "1m", "9830Mi", "modern,track_sizes", 0},
		{"index-cache", 3, "2048", "5m", "2458Mi", "modern", 0},
		{"metadata-cache", 3, "512", "1m", "614Mi", "modern", 60},
		{"results-cache", 4, "1024", "5m", "1229Mi", "modern", 0},
	} {
		It(want.name+" is ready in every member, with the chart's figures", func(ctx SpecContext) {
			cpu := "500m"
			if lab.provider == kind {
				want.megabytes, want.memory, cpu = "64", "77Mi", "10m"
			}
			settled(ctx, ns, want.name, want.replicas)
			for _, m := range lab.members {
				c := readChildren(ctx, Default, m, ns)
				set := c.sets[want.name]
				Expect(*set.Spec.Replicas).To(Equal(want.replicas))
				Expect(set.Spec.PodManagementPolicy).To(Equal(appsv1.ParallelPodManagement))
				Expect(set.Spec.UpdateStrategy.Type).To(Equal(appsv1.RollingUpdateStatefulSetStrategyType))
				Expect(set.Spec.MinReadySeconds).To(Equal(want.minReadySeconds))

				pod := set.Spec.Template.Spec
				Expect(pod.SecurityContext.RunAsNonRoot).To(Equal(ptr.To(true)))
				for _, id := range []*int64{pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup} {
					Expect(id).To(Equal(ptr.To(int64(10001))))
				}
				Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
				Expect(pod.Containers).To(HaveLen(2))
				cache, exporter := pod.Containers[0], pod.Containers[1]
				Expect(cache.Name).To(Equal("memcached"))
				Expect(cache.Args).To(Equal([]string{"-m", want.megabytes, "-I", want.item, "-c", "16384", "--extended=" + want.extended, "-u", "11211", "-v"}))
				Expect(cache.Resources.Limits.Memory().String()).To(Equal(want.memory))
				Expect(cache.Resources.Requests.Memory().String()).To(Equal(want.memory))
				Expect(cache.Resources.Requests.Cpu().String()).To(Equal(cpu))
				Expect(cache.Ports).To(ConsistOf(corev1.ContainerPort{Name: "client", ContainerPort: 11211, Protocol: corev1.ProtocolTCP}))
				Expect(exporter.Image).To(HavePrefix("prom/memcached-exporter:"))
				Expect(exporter.Ports).To(ConsistOf(corev1.ContainerPort{Name: "http-metrics", ContainerPort: 9150, Protocol: corev1.ProtocolTCP}))
				Expect(exporter.Resources.Requests.Cpu().String()).To(Equal("50m"))
				Expect(exporter.Resources.Requests.Memory().String()).To(Equal("50Mi"))
				Expect(exporter.Resources.Limits.Memory().String()).To(Equal("250Mi"))
				for _, container := range pod.Containers {
					Expect(container.SecurityContext.AllowPrivilegeEscalation).To(Equal(ptr.To(false)))
					Expect(container.SecurityContext.ReadOnlyRootFilesystem).To(Equal(ptr.To(true)))
					Expect(container.SecurityContext.Capabilities.Drop).To(Equal([]corev1.Capability{"ALL"}))
				}

				service := c.services[want.name]
				Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
				ports := map[string]int32{}
				for _, p := range service.Spec.Ports {
					ports[p.Name] = p.Port
				}
				Expect(ports).To(Equal(map[string]int32{"client": 11211, "http-metrics": 9150}))
				Expect(c.budgets[want.name].Spec.MaxUnavailable.IntValue()).To(Equal(1))
			}
		})
	}
})

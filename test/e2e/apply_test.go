//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var _ = Describe("applying the example to the hub", Ordered, func() {
	const ns, name, example = "default", "cache-cluster", "examples/cache-cluster.yaml"

	BeforeAll(func(ctx SpecContext) {
		err := lab.hub.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &v1alpha1.CacheCluster{})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		if err == nil {
			Skip("the lab that E2E_LAB names already holds the example")
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(lab.kubectl(ctx, "--context", "hub", "delete", "cc", name, "-n", ns, "--ignore-not-found", "--timeout=2m")).To(succeed())
		})
	})

	It("prints a line for each member, then the two documented closing lines", func(ctx SpecContext) {
		out := lab.cli(ctx, "apply", example)
		Expect(out).To(succeed())
		lines := out.lines()
		Expect(len(lines)).To(BeNumerically(">=", 2))
		Expect(lines[len(lines)-2:]).To(Equal([]string{
			"reconcile: created stateful workload and service",
			"status: progressing -> ready",
		}))
		Expect(lines).To(ContainElements("member-1: Ready 2/2", "member-2: Ready 2/2", "member-3: Ready 2/2"))
		Expect(out.stdout).NotTo(ContainSubstring("\x1b"), "escape sequences where there is no terminal")
	})

	for _, member := range memberNames {
		It("creates the desired children and ready pods in "+member, func(ctx SpecContext) {
			m := lab.member(member)
			c := readChildren(ctx, Default, m, ns)
			delete(c.services, "kubernetes")
			Expect(c.sets).To(HaveLen(1))
			Expect(c.services).To(HaveLen(1))
			Expect(c.budgets).To(HaveLen(1))

			labels := And(
				HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedBy),
				HaveKeyWithValue(v1alpha1.LabelInstance, name),
				HaveKeyWithValue(v1alpha1.LabelCacheCluster, name),
				HaveKeyWithValue(v1alpha1.LabelCluster, member))
			set := c.sets[name]
			Expect(set.Labels).To(labels)
			Expect(set.Spec.Template.Labels).To(labels)
			Expect(*set.Spec.Replicas).To(Equal(int32(2)))
			Expect(set.Spec.ServiceName).To(Equal(name))
			Expect(set.Spec.PodManagementPolicy).To(Equal(appsv1.ParallelPodManagement))
			Expect(set.Status.ReadyReplicas).To(Equal(int32(2)))
			Expect(set.Spec.Template.Spec.Containers).To(HaveLen(1))
			cache := set.Spec.Template.Spec.Containers[0]
			Expect(cache.Image).To(Equal("memcached:1.6"))
			Expect(cache.Args).To(Equal([]string{"-m", "64", "-I", "1m", "-c", "1024"}))
			// 64 MiB times 1.2, rounded.
			Expect(cache.Resources.Limits.Memory().String()).To(Equal("77Mi"))
			Expect(cache.Resources.Requests.Memory().String()).To(Equal("77Mi"))

			service := c.services[name]
			Expect(service.Labels).To(labels)
			Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
			Expect(service.Spec.Ports).To(HaveLen(1))
			Expect(service.Spec.Ports[0].Name).To(Equal("client"))
			Expect(service.Spec.Ports[0].Port).To(Equal(int32(11211)))
			Expect(c.budgets[name].Spec.MaxUnavailable.IntValue()).To(Equal(1))

			// Clients find the pods by these.
			Eventually(ctx, func(g Gomega) {
				var slices discoveryv1.EndpointSliceList
				g.Expect(m.List(ctx, &slices, client.InNamespace(ns), client.MatchingLabels{discoveryv1.LabelServiceName: name})).To(Succeed())
				ready := 0
				for _, s := range slices.Items {
					for _, e := range s.Endpoints {
						if e.Conditions.Ready != nil && *e.Conditions.Ready {
							ready++
						}
					}
				}
				g.Expect(ready).To(Equal(2))
			}).Should(Succeed())
		})
	}

	It("summarizes the members in the status on the hub", func(ctx SpecContext) {
		settled(ctx, ns, name, 2)
		cc := getCache(ctx, Default, ns, name)
		Expect(cc.Status.Members).To(Equal("3/3"))
		Expect(cc.Status.Replicas).To(Equal(int32(6)))
		Expect(cc.Status.ReadyReplicas).To(Equal(int32(6)))
		Expect(condition(cc, v1alpha1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(condition(cc, v1alpha1.ConditionPlaced)).To(HaveField("Status", metav1.ConditionTrue))
		for _, absent := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
			Expect(condition(cc, absent).Type).To(BeEmpty(), "kstatus reads the presence of %s", absent)
		}
	})

	It("changes nothing when it is applied again", func(ctx SpecContext) {
		settled(ctx, ns, name, 2)
		before, hub := versions(ctx, ns), getCache(ctx, Default, ns, name).ResourceVersion
		out := lab.cli(ctx, "apply", example)
		Expect(out).To(succeed())
		Expect(out.lines()).To(ContainElements("reconcile: nothing to change", "status: ready"))
		Expect(versions(ctx, ns)).To(Equal(before))
		Expect(getCache(ctx, Default, ns, name).ResourceVersion).To(Equal(hub))
	})

	It("can be read as JSON and YAML", func(ctx SpecContext) {
		var list struct{ Items []v1alpha1.CacheCluster }
		out := lab.cli(ctx, "get", "-n", ns, "-o", "json")
		Expect(out).To(succeed())
		Expect(json.Unmarshal([]byte(out.stdout), &list)).To(Succeed())
		Expect(list.Items).To(ContainElement(HaveField("Name", name)))

		for format, parse := range map[string]func([]byte, any) error{
			"json": json.Unmarshal,
			"yaml": func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
		} {
			var cc v1alpha1.CacheCluster
			out := lab.cli(ctx, "status", name, "-n", ns, "-o", format)
			Expect(out).To(succeed())
			Expect(parse([]byte(out.stdout), &cc)).To(Succeed())
			Expect(cc.Kind).To(Equal("CacheCluster"))
			Expect(cc.Status.Clusters).To(HaveLen(3))
		}

		members := map[string]string{}
		out = lab.cli(ctx, "observe", name, "--once", "-n", ns, "-o", "json")
		Expect(out).To(succeed())
		for scanner := bufio.NewScanner(strings.NewReader(out.stdout)); scanner.Scan(); {
			var event struct{ Type, Member, State string }
			Expect(json.Unmarshal(scanner.Bytes(), &event)).To(Succeed(), scanner.Text())
			if event.Type == "Member" {
				members[event.Member] = event.State
			}
		}
		Expect(members).To(Equal(map[string]string{"member-1": "Ready", "member-2": "Ready", "member-3": "Ready"}))
	})

	It("can be read as a table with the columns of kubectl", func(ctx SpecContext) {
		const columns = `NAME +ENGINE +MEMBERS +READY +STATUS +REVISION +AGE`
		row := `(?m)^` + name + ` +Memcached +3/3 +True +AllMembersReady +\S+ +\S+$`
		for _, out := range []result{
			lab.cli(ctx, "get", "-n", ns),
			lab.kubectl(ctx, "--context", "hub", "get", "cc", "-n", ns),
			lab.kubectl(ctx, "cachecluster", "get", "-n", ns),
		} {
			Expect(out).To(succeed())
			Expect(out.stdout).To(And(MatchRegexp(columns), MatchRegexp(row)), out.command)
		}
		out := lab.cli(ctx, "status", name, "-n", ns)
		Expect(out).To(succeed())
		Expect(out.lines()[0]).To(Equal("default/cache-cluster: Ready 3/3 members"))
		for _, member := range memberNames {
			Expect(out.stdout).To(MatchRegexp(`(?m)^` + member + ` +Ready +2/2 `))
		}
		out = lab.kubectl(ctx, "--context", "hub", "get", "mcache", "-n", ns)
		Expect(out).To(succeed())
		for _, member := range memberNames {
			Expect(out.stdout).To(MatchRegexp(`(?m)^cache-cluster\.` + member + ` +cache-cluster +` + member + ` +Ready +2 +PodsReady `))
		}
	})
})

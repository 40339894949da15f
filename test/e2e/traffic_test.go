//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("clients in a member", Ordered, Label(kind), func() {
	const name = "sessions"
	var ns string

	BeforeAll(func(ctx SpecContext) {
		if lab.provider == embedded {
			Skip("the embedded lab's pods are simulated: no memcached runs in them")
		}
		ns = newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 2\nservice: {type: ClusterIP}\n"+inLab))).To(succeed())
		settled(ctx, ns, name, 2)
	})

	for _, member := range memberNames {
		It("set a value through the Service of "+member+" and read it back", func(ctx SpecContext) {
			m := lab.member(member)
			// Through the virtual IP any of the pods may answer; the one that has it does.
			Expect(m.talk(ctx, ns, name+"-client", "set greeting 0 0 "+fmt.Sprint(len(member)), member)).To(Equal([]string{"STORED"}))
			var found []string
			for pod := range 2 {
				// The DNS name of the pod behind the headless Service.
				answer := m.talk(ctx, ns, fmt.Sprintf("%s-%d.%s.%s.svc.cluster.local", name, pod, name, ns), "get greeting")
				if slices.Contains(answer, "VALUE greeting 0 "+fmt.Sprint(len(member))) {
					found = append(found, answer[1])
				}
			}
			Expect(found).To(Equal([]string{member}), "the value that was set in this member, in one pod")
		})
	}

	It("find every pod by the headless Service's name", func(ctx SpecContext) {
		m := lab.member("member-1")
		var pods corev1.PodList
		Expect(m.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{"app.kubernetes.io/instance": name})).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		out := m.runPod(ctx, ns, fmt.Sprintf("busybox nslookup %s.%s.svc.cluster.local", name, ns))
		for _, pod := range pods.Items {
			Expect(out).To(MatchRegexp(`(?m)^Address.*: ` + pod.Status.PodIP + `$`))
		}
	})

	It("keep their values while drift is corrected", func(ctx SpecContext) {
		m := lab.member("member-2")
		pod := name + "-0." + name
		Expect(m.talk(ctx, ns, pod, "set kept 0 0 3", "yes")).To(Equal([]string{"STORED"}))
		Expect(lab.kubectl(ctx, "--context", m.Context, "-n", ns, "delete", "service", name)).To(succeed())
		Expect(lab.kubectl(ctx, "--context", m.Context, "-n", ns, "scale", "statefulset", name, "--replicas=4")).To(succeed())
		settled(ctx, ns, name, 2)
		Expect(m.talk(ctx, ns, pod, "get kept")).To(Equal([]string{"VALUE kept 0 3", "yes", "END"}))
	})
})

// talk sends lines of memcached's text protocol to a host, from a pod of the
// member, and returns the answer's lines.
func (c *testCluster) talk(ctx context.Context, ns, host string, lines ...string) []string {
	GinkgoHelper()
	said := strings.Join(append(lines, "quit"), `\r\n`)
	out := c.runPod(ctx, ns, fmt.Sprintf(`printf '%s\r\n' | busybox nc -w 5 %s 11211`, said, host))
	return strings.Split(strings.TrimRight(strings.ReplaceAll(out, "\r", ""), "\n"), "\n")
}

// runPod runs a script in a pod and returns what it printed. The script is tried
// until it ends well: a name may not be served yet in the first moment.
func (c *testCluster) runPod(ctx context.Context, ns, script string) string {
	GinkgoHelper()
	api, err := kubernetes.NewForConfig(c.config)
	Expect(err).NotTo(HaveOccurred())
	pod, err := api.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyOnFailure,
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers: []corev1.Container{{
				Name: "client", Image: c.busybox(ctx, api), ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"busybox", "sh", "-c", "set -e; " + script},
			}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = api.CoreV1().Pods(ns).Delete(ctx, pod.Name, metav1.DeleteOptions{}) }()
	Eventually(ctx, func(g Gomega) {
		now, err := api.CoreV1().Pods(ns).Get(ctx, pod.Name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now.Status.Phase).To(Equal(corev1.PodSucceeded), "%s: %v", script, now.Status.ContainerStatuses)
	}).Should(Succeed())
	out, err := api.CoreV1().Pods(ns).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	fmt.Fprintf(GinkgoWriter, "%s: %s\n%s", c.Name, script, out)
	return string(out)
}

// busybox is the image of it that the node image has, else the published one.
func (c *testCluster) busybox(ctx context.Context, api kubernetes.Interface) string {
	GinkgoHelper()
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, node := range nodes.Items {
		for _, image := range node.Status.Images {
			for _, name := range image.Names {
				if strings.Contains(name, "reconcile-lab/busybox:") {
					return name
				}
			}
		}
	}
	return "busybox:1.37"
}

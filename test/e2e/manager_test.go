//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// The hub manager is a process of the embedded lab and a Deployment of a kind
// lab's hub. Stopping and starting it are the only things that differ.

const deployment = "deployment/hub"

// stopManager ends the manager and returns when it is gone. A process is killed:
// it gets no chance to put anything in order. However the spec ends, the manager
// then runs again, for the clean-up and the specs that follow.
func (l *testLab) stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(l.startManager)
	if l.provider == embedded {
		pid := l.managerPID()
		Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
		Eventually(ctx, func() error { return syscall.Kill(pid, 0) }).Should(MatchError(syscall.ESRCH))
		return
	}
	l.scaleManager(ctx, "0")
	Eventually(ctx, func(g Gomega) {
		var pods corev1.PodList
		g.Expect(l.hub.List(ctx, &pods, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	}).Should(Succeed())
}

func (l *testLab) startManager(ctx context.Context) {
	GinkgoHelper()
	if l.provider == embedded {
		Expect(l.run(ctx, "", l.binary(), "up", "--name", l.name)).To(succeed())
		return
	}
	l.scaleManager(ctx, "1")
	Expect(l.kubectl(ctx, "--context", "hub", "-n", v1alpha1.InventoryNamespace, "rollout", "status", deployment, "--timeout=3m")).To(succeed())
}

func (l *testLab) scaleManager(ctx context.Context, replicas string) {
	GinkgoHelper()
	Expect(l.kubectl(ctx, "--context", "hub", "-n", v1alpha1.InventoryNamespace, "scale", deployment, "--replicas="+replicas)).To(succeed())
}

// managerPID reads the lab's record.
func (l *testLab) managerPID() int {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(l.dir(), "lab.json"))
	Expect(err).NotTo(HaveOccurred())
	var record struct {
		Manager struct {
			PID int `json:"pid"`
		} `json:"manager"`
	}
	Expect(json.Unmarshal(content, &record)).To(Succeed())
	Expect(record.Manager.PID).To(BeNumerically(">", 0))
	return record.Manager.PID
}

func (l *testLab) managerLog(ctx context.Context) string {
	if l.provider == embedded {
		return l.run(ctx, "", "tail", "-n", "40", filepath.Join(l.dir(), "hub.log")).stdout
	}
	return l.kubectl(ctx, "--context", "hub", "-n", v1alpha1.InventoryNamespace, "logs", deployment, "--tail=40").stdout
}

var _ = Describe("a hub manager that was stopped", Ordered, func() {
	const name = "cache"
	var ns string

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(ns, name, "replicas: 2\n"+inLab))).To(succeed())
		settled(ctx, ns, name, 2)
	})

	It("corrects drift that happened meanwhile, and writes to nothing else", func(ctx SpecContext) {
		before := versions(ctx, ns)
		lab.stopManager(ctx)
		// In each member, so that each is seen to have been looked at again.
		for _, m := range lab.members {
			patch(ctx, m, &corev1.Service{ObjectMeta: object(ns, name)}, `{"metadata":{"labels":{"app.kubernetes.io/instance":"another"}}}`)
		}
		lab.startManager(ctx)
		for _, m := range lab.members {
			Eventually(ctx, func(g Gomega) {
				g.Expect(readChildren(ctx, g, m, ns).services[name].Labels).To(HaveKeyWithValue(v1alpha1.LabelInstance, name), m.Name)
				last := entry(getCache(ctx, g, ns, name), m.Name).LastDrift
				g.Expect(last).NotTo(BeNil())
				g.Expect(*last).To(And(HaveField("Object", "Service/"+name), HaveField("Manager", "other-client")))
			}).Should(Succeed())
		}
		settled(ctx, ns, name, 2)
		after := versions(ctx, ns)
		for _, member := range memberNames {
			Expect(after[member]["Service/"+name]).NotTo(Equal(before[member]["Service/"+name]))
			delete(before[member], "Service/"+name)
			delete(after[member], "Service/"+name)
		}
		Expect(after).To(Equal(before))
	})

	It("writes nothing at all where nothing drifted", func(ctx SpecContext) {
		settled(ctx, ns, name, 2)
		before, hub := versions(ctx, ns), getCache(ctx, Default, ns, name).ResourceVersion
		lab.stopManager(ctx)
		lab.startManager(ctx)
		// Another cache gets ready in every member: the manager is at work.
		Expect(lab.apply(ctx, manifest(newNamespace(ctx), "later", "replicas: 1\n"+inLab))).To(succeed())
		Expect(versions(ctx, ns)).To(Equal(before))
		Expect(getCache(ctx, Default, ns, name).ResourceVersion).To(Equal(hub))
	})

	It("applies a change and a deletion that were requested meanwhile", func(ctx SpecContext) {
		gone := newNamespace(ctx)
		Expect(lab.apply(ctx, manifest(gone, name, "replicas: 1\n"+inLab))).To(succeed())
		lab.stopManager(ctx)
		Expect(lab.kubectl(ctx, "--context", "hub", "-n", ns, "scale", "cc", name, "--replicas=1")).To(succeed())
		Expect(lab.kubectl(ctx, "--context", "hub", "-n", gone, "delete", "cc", name, "--wait=false")).To(succeed())
		Expect(lab.hub.Get(ctx, client.ObjectKey{Namespace: gone, Name: name}, &v1alpha1.CacheCluster{})).To(Succeed(), "children would be left behind")
		out := lab.apply(ctx, manifest(ns, "unseen", inLab), "--timeout", "2s")
		Expect(out).To(exitWith(3))
		Expect(out.stdout).To(ContainSubstring("the hub manager has not observed this change"))
		lab.startManager(ctx)
		settled(ctx, ns, name, 1)
		settled(ctx, ns, "unseen", 1)
		Eventually(ctx, func(g Gomega) {
			for _, m := range lab.members {
				g.Expect(readChildren(ctx, g, m, gone).versions()).To(BeEmpty(), m.Name)
			}
		}).Should(Succeed())
	})

	It("keeps running pods unchanged when its Deployment replaces it", func(ctx SpecContext) {
		if lab.provider == embedded {
			Skip("the embedded lab's manager is a process: it has no pod that a Deployment would replace")
		}
		settled(ctx, ns, name, 1)
		before := versions(ctx, ns)
		Expect(lab.hub.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
		Expect(lab.kubectl(ctx, "--context", "hub", "-n", v1alpha1.InventoryNamespace, "rollout", "status", deployment, "--timeout=3m")).To(succeed())
		m := lab.member("member-1")
		Expect(m.Delete(ctx, &appsv1.StatefulSet{ObjectMeta: object(ns, name)})).To(Succeed())
		settled(ctx, ns, name, 1)
		after := versions(ctx, ns)
		delete(before, "member-1")
		delete(after, "member-1")
		Expect(after).To(Equal(before))
	})
})

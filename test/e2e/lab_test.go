//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	embedded = "embedded"
	kind     = "kind"
)

// memberNames are known before there is a lab, for the specs of each member.
var memberNames = []string{"member-1", "member-2", "member-3"}

// lab is the one that the suites run on.
var lab *testLab

type testLab struct {
	name, provider string
	// root is the project's folder, state the one of all labs.
	root, state string
	// own reports whether the suite makes and removes the lab.
	own     bool
	hub     *testCluster
	members []*testCluster
}

// testCluster is an entry of `reconcile-lab clusters -o json`, and access to it.
type testCluster struct {
	Name       string `json:"name"`
	Role       string `json:"role"`
	Provider   string `json:"provider"`
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
	Ready      bool   `json:"ready"`

	client.WithWatch `json:"-"`
	config           *rest.Config
}

func newTestLab(provider, existing string) (*testLab, error) {
	if provider != embedded && provider != kind {
		return nil, fmt.Errorf("E2E_PROVIDER=%q: set it to %s or %s", provider, embedded, kind)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	l := &testLab{name: existing, provider: provider, root: root, state: os.Getenv("RECONCILE_LAB_STATE"), own: existing == ""}
	for _, binary := range []string{l.binary(), filepath.Join(root, "bin", "hub")} {
		if _, err := os.Stat(binary); err != nil {
			return nil, fmt.Errorf("%w: run make build", err)
		}
	}
	if !l.own {
		return l, nil
	}
	l.name = fmt.Sprintf("e2e-%d", os.Getpid())
	if l.state == "" {
		// The state of the user must not change: it names the lab that was used last.
		if l.state, err = os.MkdirTemp("", "reconcile-lab-e2e-"); err != nil {
			return nil, err
		}
		DeferCleanup(func() error {
			if err := os.Remove(l.state); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		})
	}
	return l, nil
}

func (l *testLab) binary() string { return filepath.Join(l.root, "reconcile-lab") }

// start makes the lab and, on kind, deploys the hub manager.
func (l *testLab) start(ctx context.Context) {
	GinkgoHelper()
	if !l.own {
		return
	}
	By("starting lab " + l.name)
	Expect(l.run(ctx, "", l.binary(), "up", "--provider", l.provider, "--name", l.name, "--members", fmt.Sprint(len(memberNames)))).To(succeed())
	if l.provider == kind {
		By("deploying the hub manager")
		Expect(l.run(ctx, "", filepath.Join(l.root, "hack", "deploy.sh"), "--name", l.name)).To(succeed())
	}
}

// connect finds the clusters as a script would, and waits until the hub reaches
// every member.
func (l *testLab) connect(ctx context.Context) {
	GinkgoHelper()
	var clusters []*testCluster
	// On a busy machine an API server may answer late right after the start.
	Eventually(ctx, func(g Gomega) {
		out := l.cli(ctx, "clusters", "-o", "json")
		g.Expect(out).To(succeed())
		clusters = nil
		g.Expect(json.Unmarshal([]byte(out.stdout), &clusters)).To(Succeed())
		for _, c := range clusters {
			g.Expect(c.Ready).To(BeTrue(), "%s is not ready", c.Name)
		}
	}).Should(Succeed())
	names := map[string]string{}
	for _, c := range clusters {
		Expect(c.Provider).To(Equal(l.provider))
		c.connect()
		names[c.Name] = c.Role
		if c.Role == "hub" {
			l.hub = c
		} else {
			l.members = append(l.members, c)
		}
	}
	Expect(names).To(Equal(map[string]string{"hub": "hub", "member-1": "member", "member-2": "member", "member-3": "member"}))
	for _, name := range memberNames {
		Eventually(ctx, reachable(name)).Should(HaveField("Status", metav1.ConditionTrue))
	}
}

func (c *testCluster) connect() {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, inventoryv1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	var err error
	c.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	Expect(err).NotTo(HaveOccurred())
	c.config.QPS, c.config.UserAgent = -1, "e2e"
	c.WithWatch, err = client.NewWithWatch(c.config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}

func (l *testLab) member(name string) *testCluster {
	GinkgoHelper()
	for _, m := range l.members {
		if m.Name == name {
			return m
		}
	}
	Fail("there is no member " + name)
	return nil
}

// reachable returns the report of the hub about its connection to a member.
func reachable(member string) func(Gomega, context.Context) metav1.Condition {
	return func(g Gomega, ctx context.Context) metav1.Condition {
		var profile inventoryv1alpha1.ClusterProfile
		g.Expect(lab.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.InventoryNamespace, Name: member}, &profile)).To(Succeed())
		condition := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable)
		g.Expect(condition).NotTo(BeNil())
		return *condition
	}
}

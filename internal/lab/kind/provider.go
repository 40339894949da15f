package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage"
)

// Provider of the clusters of one lab.
type Provider struct {
	lab string

	mu    sync.Mutex
	image nodeimage.Image // what Prepare found
}

var (
	_ lab.Provider = (*Provider)(nil)
	_ lab.Sized    = (*Provider)(nil)
)

// New returns the provider of a lab's clusters.
func New(labName string) *Provider { return &Provider{lab: labName} }

// Name is "kind".
func (p *Provider) Name() string { return "kind" }

// Prepare finds or builds the image of the nodes.
func (p *Provider) Prepare(ctx context.Context, report lab.Report) error {
	if limit, known := inotifyInstances(); known && limit < wantInotify {
		report(fmt.Sprintf("only %d inotify instances a user: pods may fail to start; as root: sysctl -w fs.inotify.max_user_instances=%d", limit, wantInotify))
	}
	_, err := p.nodeImage(ctx, report)
	return err
}

// wantInotify instances are enough for four nodes with systemd, kubelet and
// kube-proxy, which use up the kernel's default of 128.
const wantInotify = 512

func inotifyInstances() (limit int, known bool) {
	content, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, false
	}
	limit, err = strconv.Atoi(strings.TrimSpace(string(content)))
	return limit, err == nil
}

func (p *Provider) nodeImage(ctx context.Context, report lab.Report) (nodeimage.Image, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image.Ref != "" {
		return p.image, nil
	}
	image, err := nodeimage.Ensure(ctx, nodeimage.Report(report))
	if err != nil {
		return nodeimage.Image{}, err
	}
	p.image = image
	return image, nil
}

// Footprint is what a node takes at rest, and room for some pods.
func (p *Provider) Footprint() lab.Footprint {
	return lab.Footprint{Memory: 500 << 20, Disk: 1 << 30}
}

// Kubeconfig names the port that Docker publishes on this machine.
func (p *Provider) Kubeconfig(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config, err := engine(nil).KubeConfig(p.clusterName(name), false)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of kind cluster %s: %w", p.clusterName(name), err)
	}
	return []byte(config), nil
}

// List names the lab's clusters.
func (p *Provider) List(ctx context.Context) ([]string, error) {
	out, err := docker.Run(ctx, "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster", "--format", `{{.Label "io.x-k8s.kind.cluster"}}`)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range strings.Fields(out) {
		if ours, ok := p.ourName(name); ok {
			names = append(names, ours)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Delete removes the cluster's container and its volume, and with the last kind cluster
// of the machine kind's network.
func (p *Provider) Delete(ctx context.Context, name string) error {
	if _, err := docker.Run(ctx, "rm", "--force", "--volumes", p.nodeName(name)); err != nil && !noSuchContainer(err) {
		return err
	}
	left, err := docker.Run(ctx, "ps", "--all", "--quiet", "--filter", "network=kind")
	if err != nil {
		return err
	}
	if left == "" {
		// Another cluster may be about to use it, which Docker then says.
		_, _ = docker.Run(ctx, "network", "rm", "kind")
	}
	return nil
}

// clusterName must leave room for kind's suffix in a host name.
func (p *Provider) clusterName(name string) string { return "rl-" + p.lab + "-" + name }

func (p *Provider) nodeName(name string) string { return p.clusterName(name) + "-control-plane" }

// A lab's name may be the beginning of another's.
var clusterOfLab = regexp.MustCompile(`^(hub|member-[0-9]+)$`)

func (p *Provider) ourName(clusterName string) (string, bool) {
	name, found := strings.CutPrefix(clusterName, "rl-"+p.lab+"-")
	return name, found && clusterOfLab.MatchString(name)
}

// engine is made for each use: kind's provider is not safe to share.
func engine(report lab.Report) *cluster.Provider {
	return cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{report}))
}

// withScratchKubeconfig keeps kind from writing to the user's kubeconfig.
func withScratchKubeconfig(use func(path string) error) error {
	dir, err := os.MkdirTemp("", "reconcile-lab-kind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return use(filepath.Join(dir, "kubeconfig"))
}

func noSuchContainer(err error) bool { return strings.Contains(err.Error(), "No such container") }

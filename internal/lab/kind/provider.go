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

// Provider runs the clusters of one lab.
type Provider struct {
	lab string

	mu    sync.Mutex
	image nodeimage.Image // set by the first call of nodeImage
}

var (
	_ lab.Provider = (*Provider)(nil)
	_ lab.Sized    = (*Provider)(nil)
)

// New returns the provider of the lab with that name.
func New(labName string) *Provider { return &Provider{lab: labName} }

// Name returns "kind".
func (p *Provider) Name() string { return "kind" }

// Prepare finds or builds the image of the nodes.
func (p *Provider) Prepare(ctx context.Context, report lab.Report) error {
	if limit, known := inotifyInstances(); known && limit < minInotify {
		report(fmt.Sprintf("only %d inotify instances per user, pods may fail to start; run as root: sysctl -w fs.inotify.max_user_instances=%d", limit, minInotify))
	}
	_, err := p.nodeImage(ctx, report)
	return err
}

// minInotify is enough for four nodes with systemd, kubelet and kube-proxy. These exhaust
// the default of the kernel, 128 instances.
const minInotify = 512

// inotifyInstances returns the limit of inotify instances per user.
func inotifyInstances() (limit int, known bool) {
	content, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, false
	}
	limit, err = strconv.Atoi(strings.TrimSpace(string(content)))
	return limit, err == nil
}

// nodeImage returns the image of the nodes, and finds or builds it at the first call.
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

// Footprint returns what an idle node uses, plus room for some pods.
func (p *Provider) Footprint() lab.Footprint {
	return lab.Footprint{Memory: 500 << 20, Disk: 1 << 30}
}

// Kubeconfig returns a kubeconfig with the port that Docker publishes on this machine.
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

// List returns the clusters of the lab.
func (p *Provider) List(ctx context.Context) ([]string, error) {
	out, err := docker.Run(ctx, "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster", "--format", `{{.Label "io.x-k8s.kind.cluster"}}`)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range strings.Fields(out) {
		if name, ok := p.labCluster(name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Delete removes the container of the cluster and its volume. With the last kind cluster of
// the machine it also removes kind's network.
func (p *Provider) Delete(ctx context.Context, name string) error {
	if _, err := docker.Run(ctx, "rm", "--force", "--volumes", p.nodeName(name)); err != nil && !noSuchContainer(err) {
		return err
	}
	remaining, err := docker.Run(ctx, "ps", "--all", "--quiet", "--filter", "network=kind")
	if err != nil {
		return err
	}
	if remaining == "" {
		// Docker refuses this if another cluster joins the network meanwhile.
		_, _ = docker.Run(ctx, "network", "rm", "kind")
	}
	return nil
}

// clusterName returns kind's name of a cluster. It must be short enough for a host name
// with kind's suffix.
func (p *Provider) clusterName(name string) string { return "rl-" + p.lab + "-" + name }

func (p *Provider) nodeName(name string) string { return p.clusterName(name) + "-control-plane" }

// clusterPattern matches the name of a cluster in a lab. It excludes the clusters of a lab
// whose name begins with the name of this one.
var clusterPattern = regexp.MustCompile(`^(hub|member-[0-9]+)$`)

// labCluster returns the name in the lab of a kind cluster, and reports whether the cluster
// belongs to this lab.
func (p *Provider) labCluster(clusterName string) (string, bool) {
	name, found := strings.CutPrefix(clusterName, "rl-"+p.lab+"-")
	return name, found && clusterPattern.MatchString(name)
}

// engine returns a new provider of kind's library, which is not safe for concurrent use.
func engine(report lab.Report) *cluster.Provider {
	return cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{report}))
}

// withScratchKubeconfig calls use with the path of a temporary kubeconfig, so that kind
// does not write to the one of the user.
func withScratchKubeconfig(use func(path string) error) error {
	dir, err := os.MkdirTemp("", "reconcile-lab-kind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return use(filepath.Join(dir, "kubeconfig"))
}

func noSuchContainer(err error) bool { return strings.Contains(err.Error(), "No such container") }

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// Name of the provider.
const Name = "embedded"

type provider struct {
	dir string
}

var _ lab.Provider = (*provider)(nil)

// New returns the provider of the lab in dir. Its clusters are in <dir>/clusters.
func New(dir string) lab.Provider { return &provider{dir: filepath.Join(dir, "clusters")} }

func (*provider) Name() string { return Name }

// Footprint returns what one idle cluster uses, as measured on amd64: the resident memory
// of its five processes, the files of etcd and the logs of one day.
func (*provider) Footprint() lab.Footprint {
	return lab.Footprint{Memory: 600 << 20, Disk: 300 << 20}
}

func (*provider) Prepare(ctx context.Context, report lab.Report) error {
	_, err := binaries.Ensure(ctx, binaries.Report(report), append(slices.Clone(programs), "kubectl")...)
	return err
}

func (p *provider) files(cluster string) files { return files{dir: filepath.Join(p.dir, cluster)} }

func (p *provider) Create(ctx context.Context, cluster string, _ lab.Role, report lab.Report) error {
	if p.Ready(ctx, cluster) {
		return nil
	}
	f := p.files(cluster)
	err := create(ctx, cluster, f, report)
	if errors.Is(err, errNotReady) || errors.Is(err, errPortLost) {
		// One cause is an API server that lost the connection to its etcd.
		report("restarting all programs")
		if err = process.Stop(ctx, 0, f.dir, programs...); err == nil {
			err = create(ctx, cluster, f, report)
		}
	}
	if err != nil {
		return fmt.Errorf("create cluster %s: %w", cluster, err)
	}
	return nil
}

func (p *provider) Ready(ctx context.Context, cluster string) bool {
	f := p.files(cluster)
	saved, exists, err := loadPorts(f)
	if err != nil || !exists {
		return false
	}
	current, outdated, err := running(f, saved)
	if err != nil || len(current) < len(programs) || len(outdated) > 0 {
		return false
	}
	c, err := newClient(f)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return lab.AcceptsPods(ctx, c, nodeCount)
}

func (p *provider) Kubeconfig(_ context.Context, cluster string) ([]byte, error) {
	content, err := os.ReadFile(p.files(cluster).kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s is incomplete: %w; run reconcile-lab up", cluster, err)
	}
	return content, nil
}

// PodKubeconfig returns the same as Kubeconfig, since the hub manager is a process of this
// machine.
func (p *provider) PodKubeconfig(ctx context.Context, cluster string) ([]byte, error) {
	return p.Kubeconfig(ctx, cluster)
}

// List also returns clusters whose files are gone while processes still run.
func (p *provider) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	found, err := process.Find(p.dir, programs...)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		names = append(names, clusterOf(p.dir, f.Args))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// clusterOf returns the name of the cluster whose directory the arguments name.
func clusterOf(dir string, args []string) string {
	_, below, _ := strings.Cut(strings.Join(args, " "), dir+string(filepath.Separator))
	name, _, _ := strings.Cut(below, string(filepath.Separator))
	return name
}

func (p *provider) Delete(ctx context.Context, cluster string) error {
	f := p.files(cluster)
	// All data is deleted, so no program needs a graceful end.
	if err := process.Stop(ctx, 0, f.dir, programs...); err != nil {
		return fmt.Errorf("delete cluster %s: %w", cluster, err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("delete cluster %s: %w", cluster, err)
	}
	return nil
}

// newClient reads the kubeconfig at each call, since the port may have changed.
func newClient(f files) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig())
	if err != nil {
		return nil, err
	}
	config.Timeout = 5 * time.Second
	config.QPS, config.Burst = 50, 100
	return kubernetes.NewForConfig(config)
}

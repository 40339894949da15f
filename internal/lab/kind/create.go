package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage"
)

const (
	// marker is a file in the node. It exists if the cluster was complete once.
	marker = "/kind/reconcile-lab-whole"

	// createTimeout limits the wait for a new cluster. Four at once on two cores take about
	// two minutes.
	createTimeout = 6 * time.Minute
	// restartTimeout limits the wait for a cluster whose container was started again. After
	// that, a new cluster is the quicker way.
	restartTimeout = 2 * time.Minute
)

// Create creates the cluster, or completes or restarts an existing one.
func (p *Provider) Create(ctx context.Context, name string, _ lab.Role, report lab.Report) error {
	if p.Ready(ctx, name) && p.marked(ctx, name) {
		return nil
	}
	if running, err := p.restart(ctx, name, report); running || err != nil {
		return err
	}
	if err := p.Delete(ctx, name); err != nil {
		return err
	}
	image, err := p.nodeImage(ctx, report)
	if err != nil {
		return err
	}
	err = p.createWithKind(ctx, name, image, report)
	if err != nil && portInUse(err) {
		// Another program has used the free port that kind chose.
		report("another program uses its port: choosing another port")
		if err := p.Delete(ctx, name); err != nil {
			return err
		}
		err = p.createWithKind(ctx, name, image, report)
	}
	if err != nil {
		return fmt.Errorf("create kind cluster %s: %w", p.clusterName(name), err)
	}
	report("waiting for the node to be ready")
	if err := p.waitReady(ctx, name, createTimeout); err != nil {
		return fmt.Errorf("kind cluster %s is not ready after %s: %w; see `docker exec %s journalctl -u kubelet`", p.clusterName(name), createTimeout, err, p.nodeName(name))
	}
	_, err = docker.Run(ctx, "exec", p.nodeName(name), "touch", marker)
	return err
}

// restart starts the container of a complete cluster, for example after a restart of
// Docker. It reports whether the cluster is ready; if not, it must be recreated.
func (p *Provider) restart(ctx context.Context, name string, report lab.Report) (bool, error) {
	running, err := docker.Run(ctx, "inspect", "--format", "{{.State.Running}}", p.nodeName(name))
	if err != nil {
		return false, ctx.Err() // no container, or no daemon, which Delete then reports
	}
	if running != "true" {
		report("starting its container")
		if _, err := docker.Run(ctx, "start", p.nodeName(name)); err != nil {
			return false, ctx.Err() // another program may use its port
		}
	}
	if !p.marked(ctx, name) {
		report("removing an incomplete cluster")
		return false, ctx.Err()
	}
	report("waiting for the node to be ready")
	if err := p.waitReady(ctx, name, restartTimeout); err != nil {
		report("not ready in time: recreating the cluster")
		return false, ctx.Err()
	}
	return true, nil
}

// createWithKind runs kind, which takes no context. When ctx ends, createWithKind deletes
// the node, which makes kind fail.
func (p *Provider) createWithKind(ctx context.Context, name string, image nodeimage.Image, report lab.Report) error {
	created := make(chan error, 1)
	go func() {
		created <- withScratchKubeconfig(func(path string) error {
			return engine(report).Create(p.clusterName(name),
				cluster.CreateWithV1Alpha4Config(config(image)),
				cluster.CreateWithNodeImage(image.Ref),
				cluster.CreateWithKubeconfigPath(path),
				cluster.CreateWithDisplayUsage(false),
				cluster.CreateWithDisplaySalutation(false),
			)
		})
	}()
	select {
	case err := <-created:
		return err
	case <-ctx.Done():
		err := p.Delete(context.WithoutCancel(ctx), name)
		select {
		case <-created: //nolint:errcheck // the error is the interruption
			// kind may have created the container after the deletion.
			err = p.Delete(context.WithoutCancel(ctx), name)
		case <-time.After(20 * time.Second):
		}
		return errors.Join(ctx.Err(), err)
	}
}

// marked reports whether the node contains the marker file.
func (p *Provider) marked(ctx context.Context, name string) bool {
	_, err := docker.Run(ctx, "exec", p.nodeName(name), "test", "-e", marker)
	return err == nil
}

func (p *Provider) waitReady(ctx context.Context, name string, timeout time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		return p.Ready(ctx, name), nil
	})
}

// portInUse reports whether kind failed because another program uses the port.
func portInUse(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}

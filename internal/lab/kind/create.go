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
	// mark is a file in the node: the cluster was whole once.
	mark = "/kind/reconcile-lab-whole"

	// readyWithin bounds the wait for a new cluster; four at once on two cores take
	// about two minutes.
	readyWithin = 6 * time.Minute
	// backWithin bounds the wait for a cluster whose container was started again. One
	// that takes longer is made anew, which is quicker.
	backWithin = 2 * time.Minute
)

// Create makes the cluster whole and ready, whatever there is of it.
func (p *Provider) Create(ctx context.Context, name string, _ lab.Role, report lab.Report) error {
	if p.Ready(ctx, name) && p.marked(ctx, name) {
		return nil
	}
	if back, err := p.revive(ctx, name, report); back || err != nil {
		return err
	}
	if err := p.Delete(ctx, name); err != nil {
		return err
	}
	image, err := p.nodeImage(ctx, report)
	if err != nil {
		return err
	}
	err = p.make(ctx, name, image, report)
	if err != nil && portTaken(err) {
		// kind chose a free port, and another program was quicker to use it.
		report("its port was taken meanwhile: trying another")
		if err := p.Delete(ctx, name); err != nil {
			return err
		}
		err = p.make(ctx, name, image, report)
	}
	if err != nil {
		return fmt.Errorf("create kind cluster %s: %w", p.clusterName(name), err)
	}
	report("waiting for the node to be ready")
	if err := p.waitReady(ctx, name, readyWithin); err != nil {
		return fmt.Errorf("kind cluster %s is not ready after %s; see `docker exec %s journalctl -u kubelet`: %w", p.clusterName(name), readyWithin, p.nodeName(name), err)
	}
	_, err = docker.Run(ctx, "exec", p.nodeName(name), "touch", mark)
	return err
}

// revive starts the container of a cluster that was whole, such as after Docker was
// restarted. False means that the cluster must be made.
func (p *Provider) revive(ctx context.Context, name string, report lab.Report) (bool, error) {
	running, err := docker.Run(ctx, "inspect", "--format", "{{.State.Running}}", p.nodeName(name))
	if err != nil {
		return false, ctx.Err() // none there, or a daemon that Delete will complain about
	}
	if running != "true" {
		report("starting its container again")
		if _, err := docker.Run(ctx, "start", p.nodeName(name)); err != nil {
			return false, ctx.Err() // its port may be taken by now
		}
	}
	if !p.marked(ctx, name) {
		report("removing a half-made cluster")
		return false, ctx.Err()
	}
	report("waiting for the node to be ready")
	if err := p.waitReady(ctx, name, backWithin); err != nil {
		report("it does not come back: making it anew")
		return false, ctx.Err()
	}
	return true, nil
}

// make runs kind. kind knows no context: when ctx ends, its node is taken away, upon
// which it gives up.
func (p *Provider) make(ctx context.Context, name string, image nodeimage.Image, report lab.Report) error {
	made := make(chan error, 1)
	go func() {
		made <- withScratchKubeconfig(func(path string) error {
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
	case err := <-made:
		return err
	case <-ctx.Done():
		err := p.Delete(context.WithoutCancel(ctx), name)
		select {
		case <-made: //nolint:errcheck // the interruption is what is reported
			// It may have made the container just after it was deleted.
			err = p.Delete(context.WithoutCancel(ctx), name)
		case <-time.After(20 * time.Second):
		}
		return errors.Join(ctx.Err(), err)
	}
}

func (p *Provider) marked(ctx context.Context, name string) bool {
	_, err := docker.Run(ctx, "exec", p.nodeName(name), "test", "-e", mark)
	return err == nil
}

func (p *Provider) waitReady(ctx context.Context, name string, within time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, within, true, func(ctx context.Context) (bool, error) {
		return p.Ready(ctx, name), nil
	})
}

func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}

package kind

import (
	"context"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/hack/docker"
)

// Stop ends the node's container at once; Create starts it again.
func (p *Provider) Stop(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "stop", "--time", "0", p.nodeName(name))
	return err
}

// Freeze pauses the node's container: its connections stay open.
func (p *Provider) Freeze(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "pause", p.nodeName(name))
	return err
}

// Thaw undoes Freeze.
func (p *Provider) Thaw(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "unpause", p.nodeName(name))
	if err != nil && (strings.Contains(err.Error(), "is not paused") || strings.Contains(err.Error(), "is not running")) {
		return nil
	}
	return err
}

package kind

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
)

// Stop ends the node's container at once; Create starts it again.
func (p *Provider) Stop(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "stop", "-t", "0", p.nodeName(name))
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

// network is Docker's network of all kind nodes.
const network = "kind"

// HostAddress is this machine's end of the nodes' network, which pods reach.
func (p *Provider) HostAddress(ctx context.Context) (string, error) {
	gateways, err := docker.Run(ctx, "network", "inspect", network, "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
	if err != nil {
		return "", err
	}
	for _, gateway := range strings.Fields(gateways) {
		if ip := net.ParseIP(gateway); ip != nil && ip.To4() != nil {
			return gateway, nil
		}
	}
	return "", fmt.Errorf("Docker's network %s has no IPv4 gateway: %q", network, gateways)
}

// Place is the node's address.
func (p *Provider) Place(ctx context.Context, name string) (string, error) {
	address, err := docker.Run(ctx, "inspect", "--format", "{{.NetworkSettings.Networks."+network+".IPAddress}}", p.nodeName(name))
	if err != nil {
		return "", err
	}
	if net.ParseIP(address) == nil {
		return "", fmt.Errorf("node %s has no address in Docker's network: it is not running", p.nodeName(name))
	}
	return address, nil
}

// Cut takes the node off the network.
func (p *Provider) Cut(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "network", "disconnect", network, p.nodeName(name))
	return err
}

// Mend puts it back. Docker gives out the lowest free address, which is the one that
// it had unless another container came; to ask for one is refused on kind's network.
func (p *Provider) Mend(ctx context.Context, name, _ string) error {
	_, err := docker.Run(ctx, "network", "connect", network, p.nodeName(name))
	if err != nil && strings.Contains(err.Error(), "already exists in network") {
		return nil
	}
	return err
}

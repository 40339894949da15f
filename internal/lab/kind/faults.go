package kind

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
)

// Stop kills the container of the node. Create starts it again.
func (p *Provider) Stop(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "stop", "-t", "0", p.nodeName(name))
	return err
}

// Pause pauses the container of the node. Its connections stay open.
func (p *Provider) Pause(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "pause", p.nodeName(name))
	return err
}

// Resume undoes Pause.
func (p *Provider) Resume(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "unpause", p.nodeName(name))
	if err != nil && (strings.Contains(err.Error(), "is not paused") || strings.Contains(err.Error(), "is not running")) {
		return nil
	}
	return err
}

// network is the name of Docker's network of all kind nodes.
const network = "kind"

// HostAddress returns the address of this machine in the network of the nodes. Pods can
// reach it.
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

// NetworkAddress returns the address of the node in Docker's network.
func (p *Provider) NetworkAddress(ctx context.Context, name string) (string, error) {
	address, err := docker.Run(ctx, "inspect", "--format", "{{.NetworkSettings.Networks."+network+".IPAddress}}", p.nodeName(name))
	if err != nil {
		return "", err
	}
	if net.ParseIP(address) == nil {
		return "", fmt.Errorf("node %s has no address in Docker's network, so it does not run; run `reconcile-lab up --provider kind`", p.nodeName(name))
	}
	return address, nil
}

// Disconnect removes the node from Docker's network.
func (p *Provider) Disconnect(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "network", "disconnect", network, p.nodeName(name))
	return err
}

// Reconnect undoes Disconnect. Docker assigns the lowest free address, which is the earlier
// one unless another container has taken it. It refuses requests for a specific address in
// kind's network.
func (p *Provider) Reconnect(ctx context.Context, name string) error {
	_, err := docker.Run(ctx, "network", "connect", network, p.nodeName(name))
	if err != nil && strings.Contains(err.Error(), "already exists in network") {
		return nil
	}
	return err
}

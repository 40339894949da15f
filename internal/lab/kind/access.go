package kind

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
)

// requestTimeout limits the requests of one readiness check.
const requestTimeout = 15 * time.Second

// Ready reports whether the API server answers, the node is ready and pods can run.
func (p *Provider) Ready(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kubeconfig, err := p.Kubeconfig(ctx, name)
	if err != nil {
		return false
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return false
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false
	}
	if !lab.AcceptsPods(ctx, client, 1) {
		return false
	}
	// Without kube-proxy, traffic to the address of a Service leaves the node.
	proxy, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	return err == nil && proxy.Status.DesiredNumberScheduled > 0 && proxy.Status.NumberReady == proxy.Status.DesiredNumberScheduled
}

// PodKubeconfig returns a kubeconfig with the address of the node in Docker's network.
// Containers, their pods and, on Linux, this machine can reach it. The certificate is
// verified against the name of the node, since Docker may assign another address to a
// restarted node.
func (p *Provider) PodKubeconfig(ctx context.Context, name string) ([]byte, error) {
	published, err := p.Kubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	address, err := p.NetworkAddress(ctx, name)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(published)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + net.JoinHostPort(address, "6443")
		cluster.TLSServerName = p.nodeName(name)
	}
	return clientcmd.Write(*config)
}

// LoadImage imports an archive, as `docker save` writes it, into the node of the cluster.
// Pods then use the image without a registry.
func (p *Provider) LoadImage(ctx context.Context, name, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	err = docker.Pipe(ctx, file, nil, "exec", "--interactive", p.nodeName(name),
		"ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", "--digests", "-")
	if err != nil {
		return fmt.Errorf("load image into %s: %w", p.nodeName(name), err)
	}
	return nil
}

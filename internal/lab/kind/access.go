package kind

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
)

// answerWithin is for one question to an API server of this machine.
const answerWithin = 5 * time.Second

// Ready asks the API server for its nodes.
func (p *Provider) Ready(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
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
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return false
	}
	for _, node := range nodes.Items {
		if !nodeReady(node) {
			return false
		}
	}
	// Without it, pods of the first objects are refused for a moment.
	if _, err = client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false
	}
	// Without it a Service's address leads out of the node, to whoever answers there.
	proxy, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	return err == nil && proxy.Status.DesiredNumberScheduled > 0 && proxy.Status.NumberReady == proxy.Status.DesiredNumberScheduled
}

func nodeReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// PodKubeconfig names the node's address in Docker's network, which containers, their
// pods and, on Linux, this machine reach. The certificate is checked for the node's name,
// as Docker may give a restarted node another address.
func (p *Provider) PodKubeconfig(ctx context.Context, name string) ([]byte, error) {
	outside, err := p.Kubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	address, err := docker.Run(ctx, "inspect", "--format", "{{.NetworkSettings.Networks.kind.IPAddress}}", p.nodeName(name))
	if err != nil {
		return nil, err
	}
	if net.ParseIP(address) == nil {
		return nil, fmt.Errorf("node %s has no address in Docker's network: it is not running; run `reconcile-lab up --provider kind`", p.nodeName(name))
	}
	config, err := clientcmd.Load(outside)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + net.JoinHostPort(address, "6443")
		cluster.TLSServerName = p.nodeName(name)
	}
	return clientcmd.Write(*config)
}

// LoadImage gives the cluster's nodes an image, out of an archive as `docker save`
// writes it, so that pods start from it without a registry.
func (p *Provider) LoadImage(ctx context.Context, name, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	err = docker.Pipe(ctx, file, nil, "exec", "--interactive", p.nodeName(name),
		"ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", "--digests", "-")
	if err != nil {
		return fmt.Errorf("load an image into %s: %w", p.nodeName(name), err)
	}
	return nil
}

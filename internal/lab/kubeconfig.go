package lab

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ResolveKubeconfig finds the kubeconfig of a lab by name, or of the lab of the last
// up if name is empty. Path and lab are empty if there is no lab at all.
func ResolveKubeconfig(name string) (path, lab string, err error) {
	asked := name != ""
	if !asked {
		if name, err = Current(); err != nil || name == "" {
			return "", "", err
		}
	}
	l, err := Open(name)
	if err != nil {
		return "", "", err
	}
	if _, err := os.Stat(l.Kubeconfig()); err != nil {
		if !asked {
			return "", "", nil
		}
		if l.Exists() {
			return "", "", fmt.Errorf("lab %s is not made completely: run reconcile-lab up --name %s", name, name)
		}
		return "", "", Unknown(name)
	}
	return l.Kubeconfig(), name, nil
}

// merge puts each cluster's admin access under a context of the cluster's name.
func merge(configs map[string][]byte) ([]byte, error) {
	merged := clientcmdapi.NewConfig()
	for cluster, content := range configs {
		config, err := clientcmd.Load(content)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
		}
		current, ok := config.Contexts[config.CurrentContext]
		if !ok || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
			return nil, fmt.Errorf("kubeconfig of %s: its current context %q is incomplete", cluster, config.CurrentContext)
		}
		merged.Clusters[cluster] = config.Clusters[current.Cluster]
		merged.AuthInfos[cluster] = config.AuthInfos[current.AuthInfo]
		merged.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	}
	merged.CurrentContext = Hub
	return clientcmd.Write(*merged)
}

// RefreshKubeconfig makes the merged file say where the clusters are now: one that was
// started again may have changed its port.
func (l *Lab) RefreshKubeconfig(ctx context.Context, p Provider) error {
	s, err := l.Load()
	if err != nil {
		return err
	}
	return l.writeKubeconfig(ctx, p, append([]string{Hub}, s.Members...))
}

// writeKubeconfig writes the merged file.
func (l *Lab) writeKubeconfig(ctx context.Context, p Provider, clusters []string) error {
	configs := map[string][]byte{}
	for _, cluster := range clusters {
		content, err := p.Kubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		configs[cluster] = content
	}
	merged, err := merge(configs)
	if err != nil {
		return err
	}
	return WriteFile(l.Kubeconfig(), merged)
}

func restConfig(ctx context.Context, p Provider, cluster string) (*rest.Config, error) {
	content, err := p.Kubeconfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
	}
	// The lab's own few calls need no throttling.
	config.QPS = -1
	return config, nil
}

// podServer is the address by which the hub's manager reaches a cluster.
func podServer(ctx context.Context, p Provider, cluster string) (string, error) {
	content, err := p.PodKubeconfig(ctx, cluster)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", cluster, err)
	}
	return config.Host, nil
}

package lab

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ResolveKubeconfig returns the kubeconfig of a lab by name, or of the current lab if name
// is empty. Path and lab are empty if no lab exists.
func ResolveKubeconfig(name string) (path, lab string, err error) {
	explicit := name != ""
	if !explicit {
		if name, err = Current(); err != nil || name == "" {
			return "", "", err
		}
	}
	l, err := Open(name)
	if err != nil {
		return "", "", err
	}
	if _, err := os.Stat(l.Kubeconfig()); err != nil {
		if !explicit {
			return "", "", nil
		}
		if l.Exists() {
			return "", "", fmt.Errorf("lab %s is incomplete; run reconcile-lab up --name %s", name, name)
		}
		return "", "", Unknown(name)
	}
	return l.Kubeconfig(), name, nil
}

// mergeKubeconfigs returns one kubeconfig with a context for each cluster, named after it.
func mergeKubeconfigs(configs map[string][]byte) ([]byte, error) {
	merged := clientcmdapi.NewConfig()
	for cluster, content := range configs {
		config, err := clientcmd.Load(content)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
		}
		current, ok := config.Contexts[config.CurrentContext]
		if !ok || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
			return nil, fmt.Errorf("kubeconfig of %s: current context %q has no cluster or no user", cluster, config.CurrentContext)
		}
		merged.Clusters[cluster] = config.Clusters[current.Cluster]
		merged.AuthInfos[cluster] = config.AuthInfos[current.AuthInfo]
		merged.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	}
	merged.CurrentContext = Hub
	return clientcmd.Write(*merged)
}

// RefreshKubeconfig writes the current addresses of the clusters to the merged file. The
// port of a cluster can change when it is started again.
func (l *Lab) RefreshKubeconfig(ctx context.Context, p Provider) error {
	state, err := l.Load()
	if err != nil {
		return err
	}
	return l.writeKubeconfig(ctx, p, append([]string{Hub}, state.Members...))
}

// writeKubeconfig writes the merged file with a context for each cluster.
func (l *Lab) writeKubeconfig(ctx context.Context, p Provider, clusters []string) error {
	configs := map[string][]byte{}
	for _, cluster := range clusters {
		content, err := p.Kubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		configs[cluster] = content
	}
	merged, err := mergeKubeconfigs(configs)
	if err != nil {
		return err
	}
	return WriteFile(l.Kubeconfig(), merged)
}

// restConfig returns admin access to a cluster from this machine.
func restConfig(ctx context.Context, p Provider, cluster string) (*rest.Config, error) {
	content, err := p.Kubeconfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
	}
	// A lab sends few requests, which need no client-side rate limit.
	config.QPS = -1
	return config, nil
}

// podServer returns the address at which the hub manager reaches a cluster.
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

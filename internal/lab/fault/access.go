package fault

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// requestTimeout limits one request to an API server or a proxy, either of which may have a
// fault.
const requestTimeout = 10 * time.Second

// client returns a client with admin access to a cluster of the lab.
func (i *Injector) client(cluster string) (client.Client, error) {
	return newClient(i.lab.Kubeconfig(), cluster)
}

func newClient(kubeconfig, cluster string) (client.Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of %s: %w", cluster, err)
	}
	config.Timeout, config.QPS, config.UserAgent = requestTimeout, -1, defaultManager
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, inventoryv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster, err)
	}
	return c, nil
}

package main

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/cmd/reconcile-lab/lab"
)

// fleet is a lab's clusters and its hub manager.
type fleet struct {
	manager  *lab.Manager
	clusters []cluster // the hub first
}

type cluster struct {
	client.WithWatch
	name string
	// host as the metrics of the manager's clients name it.
	host string
	// raw reads the API server's own metrics.
	raw rest.Interface
}

func (f *fleet) members() []cluster { return f.clusters[1:] }

func connect(l *lab.Lab) (*fleet, error) {
	state, err := l.Load()
	if err != nil {
		return nil, err
	}
	if state.Manager == nil {
		return nil, errors.New("lab " + l.Name + " runs no hub manager as a process: make an embedded one with reconcile-lab up")
	}
	f := &fleet{manager: state.Manager}
	for _, name := range append([]string{lab.Hub}, state.Members...) {
		c, err := newCluster(l.Kubeconfig(), name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.clusters = append(f.clusters, c)
	}
	return f, nil
}

func newCluster(kubeconfig, name string) (cluster, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return cluster{}, err
	}
	config.QPS, config.UserAgent = -1, "bench"
	server, err := url.Parse(config.Host)
	if err != nil {
		return cluster{}, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return cluster{}, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return cluster{}, err
	}
	unversioned := rest.CopyConfig(config)
	unversioned.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(unversioned)
	return cluster{WithWatch: c, name: name, host: server.Host, raw: raw}, err
}

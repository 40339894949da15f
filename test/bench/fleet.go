package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// namespace of all measured objects. It exists in every cluster, so no measurement
// includes its creation.
const namespace = corev1.NamespaceDefault

// fleet is a lab's clusters and its hub manager.
type fleet struct {
	options
	lab      *lab.Lab
	manager  *manager
	clusters []*cluster // the hub is the first one
	timeline *timeline
	report   report
}

type cluster struct {
	client.WithWatch
	name string
	// host is the API server's address in the metrics of the manager's clients.
	host string
	// raw reads the API server's own metrics.
	raw rest.Interface
}

func (f *fleet) hub() *cluster       { return f.clusters[0] }
func (f *fleet) members() []*cluster { return f.clusters[1:] }
func (c *cluster) String() string    { return c.name }

// otherMembers returns the members that keep working in the stage hung.
func (f *fleet) otherMembers() []*cluster { return f.clusters[1 : len(f.clusters)-1] }

// hungMember returns the member that the stage hung stops.
func (f *fleet) hungMember() *cluster { return f.clusters[len(f.clusters)-1] }

func names(clusters []*cluster) (all []string) {
	for _, c := range clusters {
		all = append(all, c.name)
	}
	return all
}

// memberCacheName returns the name of a cache's MemberCache on the hub.
func memberCacheName(cache string, member *cluster) string { return cache + "." + member.name }

func connect(l *lab.Lab, o options) (*fleet, error) {
	state, err := l.Load()
	if err != nil {
		return nil, err
	}
	if state.Manager == nil {
		return nil, fmt.Errorf("--lab: %s: no hub manager runs as a process of this machine; create an embedded lab with reconcile-lab up", l.Name)
	}
	f := &fleet{options: o, lab: l, timeline: newTimeline(), manager: &manager{Manager: *state.Manager, dir: l.Dir}}
	for _, name := range append([]string{lab.Hub}, state.Members...) {
		config, err := clientConfig(l.Kubeconfig(), name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c, err := newCluster(config, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.clusters = append(f.clusters, c)
	}
	return f, nil
}

func clientConfig(kubeconfig, name string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.UserAgent = -1, "bench"
	return config, nil
}

func newCluster(config *rest.Config, name string) (*cluster, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterinventory.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	unversioned := rest.CopyConfig(config)
	unversioned.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(unversioned)
	return &cluster{WithWatch: c, name: name, host: server.Host, raw: raw}, err
}

// hasSettled reports whether no controller has work left for a StatefulSet.
func hasSettled(set *appsv1.StatefulSet) bool {
	desired, s := *set.Spec.Replicas, set.Status
	return s.ObservedGeneration == set.Generation && s.Replicas == desired && s.ReadyReplicas == desired &&
		s.AvailableReplicas == desired && s.UpdatedReplicas == desired
}

// forEach calls do for every cluster at the same time and joins the errors.
func forEach(ctx context.Context, clusters []*cluster, do func(context.Context, *cluster) error) error {
	errs := make(chan error)
	for _, c := range clusters {
		go func() {
			if err := do(ctx, c); err != nil {
				errs <- fmt.Errorf("%s: %w", c.name, err)
				return
			}
			errs <- nil
		}()
	}
	var all error
	for range clusters {
		all = errors.Join(all, <-errs)
	}
	return all
}

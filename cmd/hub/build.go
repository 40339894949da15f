package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	hubcontroller "github.com/reconcile-lab/reconcile-lab/hub/controller"
	"github.com/reconcile-lab/reconcile-lab/hub/inventory"
	spokecontroller "github.com/reconcile-lab/reconcile-lab/spoke/controller"
)

// build wires inventory, hub and spoke into one manager.
func build(f flags, config *rest.Config) (mcmanager.Manager, error) {
	scheme, err := hubScheme()
	if err != nil {
		return nil, err
	}
	credentials, err := labels.NewRequirement(v1alpha1.LabelCredentialOf, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	here := map[string]cache.Config{f.inventory: {}}
	var mgr mcmanager.Manager
	members := inventory.New(inventory.Options{
		Hub:       func() cluster.Cluster { return mgr.GetLocalManager() },
		Namespace: f.inventory,
		Scheme:    spokecontroller.MemberScheme(),
		Cache:     spokecontroller.MemberCacheOptions(),
		Kinds:     spokecontroller.MemberKinds(),
	})
	mgr, err = mcmanager.New(config, members, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                   {Namespaces: here, Label: labels.NewSelector().Add(*credentials)},
			&clusterinventory.ClusterProfile{}: {Namespaces: here},
		}},
		Metrics:                       metricsserver.Options{BindAddress: f.metrics},
		HealthProbeBindAddress:        f.probes,
		LeaderElection:                f.elect,
		LeaderElectionID:              "hub.cache.reconcile-lab.io",
		LeaderElectionNamespace:       f.electionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(f.shutdown),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	local := mgr.GetLocalManager()
	hub := &hubcontroller.Reconciler{Client: local.GetClient(), Live: local.GetAPIReader(),
		InventoryNamespace: f.inventory, Clock: clock.RealClock{}}
	if err := hub.SetupWithManager(local); err != nil {
		return nil, fmt.Errorf("set up the hub controller: %w", err)
	}
	spoke := spokecontroller.New(spokecontroller.Options{Hub: local, InventoryNamespace: f.inventory,
		Typer: applyconfigurations.NewTypeConverter(spokecontroller.MemberScheme())})
	if err := mgr.Add(spoke); err != nil {
		return nil, fmt.Errorf("set up the spoke controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("cache", synced(local)); err != nil {
		return nil, err
	}
	return mgr, nil
}

// Package manager wires inventory, hub and spoke into the one manager that cmd/hub
// runs and the integration tests start. It reads no flags and starts nothing.
package manager

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	hubcontroller "github.com/reconcile-lab/reconcile-lab/hub/controller"
	"github.com/reconcile-lab/reconcile-lab/hub/inventory"
	"github.com/reconcile-lab/reconcile-lab/hub/orphans"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
	spokecontroller "github.com/reconcile-lab/reconcile-lab/spoke/controller"
)

// Options of the hub manager.
type Options struct {
	// Metrics and Probes are addresses to listen at; "0" turns them off.
	Metrics, Probes string
	// Profiles is the address of /debug/pprof; "" or "0" turns it off.
	Profiles string
	// Inventory is the namespace of ClusterProfiles and credentials.
	Inventory string
	// Elect works only while holding the lease in ElectionNamespace.
	Elect             bool
	ElectionNamespace string
	// Shutdown is how long running reconciles may finish when the manager stops.
	Shutdown time.Duration
	// SharedProcess lets one process hold several managers, one after the other:
	// controller names are otherwise unique in a process.
	SharedProcess bool
	// Clock of every controller; the real one if nil.
	Clock clock.PassiveClock
	// Timing of the members' probes; inventory.DefaultTiming if zero.
	Timing inventory.Timing
	// Transport goes around the HTTP transport of each member's connection, and
	// HubInformer and MemberInformer make the informers; client-go's own if nil. Tests
	// inject faults here.
	Transport      func(member string, next http.RoundTripper) http.RoundTripper
	HubInformer    inventory.NewInformer
	MemberInformer func(member string) inventory.NewInformer
}

// New gives a manager of the hub that hubConfig leads to.
func New(hubConfig *rest.Config, o Options) (mcmanager.Manager, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	scheme, err := hubScheme()
	if err != nil {
		return nil, err
	}
	credentials, err := labels.NewRequirement(v1alpha1.LabelCredentialOf, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	lock, err := lease(hubConfig, o)
	if err != nil {
		return nil, err
	}
	here := map[string]cache.Config{o.Inventory: {}}
	var mgr mcmanager.Manager
	members := inventory.New(inventory.Options{
		Hub:       func() cluster.Cluster { return mgr.GetLocalManager() },
		Namespace: o.Inventory,
		Scheme:    spokecontroller.MemberScheme(),
		Cache:     spokecontroller.MemberCacheOptions(),
		Kinds:     spokecontroller.MemberKinds(),
		Timing:    o.Timing, Clock: o.Clock,
		Transport: o.Transport, NewInformer: o.MemberInformer,
	})
	if err := spokecontroller.IndexMembers(members); err != nil {
		return nil, fmt.Errorf("set up the members' caches: %w", err)
	}
	mgr, err = mcmanager.New(hubConfig, members, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{NewInformer: o.HubInformer, ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                   {Namespaces: here, Label: labels.NewSelector().Add(*credentials)},
			&clusterinventory.ClusterProfile{}: {Namespaces: here},
		}},
		Metrics:                             metricsserver.Options{BindAddress: o.Metrics},
		HealthProbeBindAddress:              o.Probes,
		PprofBindAddress:                    o.Profiles,
		LeaderElection:                      o.Elect,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		RenewDeadline:                       ptr.To(renewDeadline),
		GracefulShutdownTimeout:             ptr.To(o.Shutdown),
		Controller:                          config.Controller{SkipNameValidation: ptr.To(o.SharedProcess)},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	local := mgr.GetLocalManager()
	sink := events.NewSink(local.GetEventRecorder(v1alpha1.ManagedBy))
	hub := &hubcontroller.Reconciler{Events: sink, Client: local.GetClient(), Live: local.GetAPIReader(),
		InventoryNamespace: o.Inventory, Clock: o.Clock}
	if err := hub.SetupWithManager(local); err != nil {
		return nil, fmt.Errorf("set up the hub controller: %w", err)
	}
	spoke := spokecontroller.New(spokecontroller.Options{Hub: local, Events: sink, InventoryNamespace: o.Inventory, Clock: o.Clock,
		Typer: applyconfigurations.NewTypeConverter(spokecontroller.MemberScheme())})
	if err := mgr.Add(spoke); err != nil {
		return nil, fmt.Errorf("set up the spoke controller: %w", err)
	}
	if err := mgr.Add(orphans.New(orphans.Options{Hub: local, InventoryNamespace: o.Inventory, Clock: o.Clock,
		Kinds: spokecontroller.ChildKinds()})); err != nil {
		return nil, fmt.Errorf("set up the look for leftovers: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("cache", synced(local)); err != nil {
		return nil, err
	}
	return mgr, nil
}

func hubScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterinventory.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

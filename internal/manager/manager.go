// Package manager builds the hub manager from inventory, hub and spoke. cmd/hub runs
// it, and the integration tests start it. The package reads no flags and starts nothing.
package manager

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// Paths of the metrics server that print what the hub controller remembers of each
// CacheCluster, and the spoke controller of each MemberCache.
const (
	debugCacheClusters = "/debug/cacheclusters"
	debugMemberCaches  = "/debug/caches"
)

// Options of the hub manager.
type Options struct {
	// MetricsAddress serves /metrics and the records under /debug, ProbeAddress serves
	// /healthz and /readyz, and PprofAddress serves /debug/pprof. "0" turns each off; an
	// empty PprofAddress does as well.
	MetricsAddress, ProbeAddress, PprofAddress string
	// InventoryNamespace holds the ClusterProfiles and the credentials of the members;
	// v1alpha1.InventoryNamespace if empty.
	InventoryNamespace string
	// LeaderElection makes the manager work only while it holds the Lease in
	// LeaderElectionNamespace; InventoryNamespace if empty.
	LeaderElection          bool
	LeaderElectionNamespace string
	// ShutdownTimeout is how long running reconciles may continue when the manager stops.
	ShutdownTimeout time.Duration
	// SharedProcess allows several managers in one process, one after the other. The
	// names of controllers are otherwise unique in a process.
	SharedProcess bool
	// Clock of every controller; the real one if nil.
	Clock clock.PassiveClock
	// Timing of the probes; inventory.DefaultTiming if zero.
	Timing inventory.Timing
	// Transport wraps the HTTP transport of each member's connection. HubInformer and
	// MemberInformer create informers; client-go's if nil. Tests inject faults here.
	Transport      func(member string, next http.RoundTripper) http.RoundTripper
	HubInformer    inventory.NewInformer
	MemberInformer func(member string) inventory.NewInformer
}

// New returns a manager of the hub that config connects to.
func New(config *rest.Config, o Options) (mcmanager.Manager, error) {
	if config == nil {
		return nil, errors.New("a client config of the hub is required")
	}
	if o.ShutdownTimeout < 0 {
		return nil, fmt.Errorf("ShutdownTimeout: %s: must not be negative", o.ShutdownTimeout)
	}
	o = withDefaults(o)
	var mgr mcmanager.Manager
	members, err := newInventory(o, func() cluster.Cluster { return mgr.GetLocalManager() })
	if err != nil {
		return nil, err
	}
	mgr, err = newManager(config, o, members)
	if err != nil {
		return nil, err
	}
	if err := addControllers(mgr, o); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("cache", cacheSynced(mgr.GetLocalManager())); err != nil {
		return nil, err
	}
	return mgr, nil
}

func withDefaults(o Options) Options {
	if o.InventoryNamespace == "" {
		o.InventoryNamespace = v1alpha1.InventoryNamespace
	}
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = o.InventoryNamespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// newInventory returns the provider of member clusters. The manager is created after
// its provider, so the inventory gets the hub when it starts.
func newInventory(o Options, hub func() cluster.Cluster) (*inventory.Inventory, error) {
	members, err := inventory.New(inventory.Options{
		Hub:       hub,
		Namespace: o.InventoryNamespace,
		Scheme:    memberqueue.Scheme(),
		Cache:     memberqueue.CacheOptions(),
		Kinds:     memberqueue.Kinds(),
		Timing:    o.Timing, Clock: o.Clock,
		Transport: o.Transport, NewInformer: o.MemberInformer,
	})
	if err != nil {
		return nil, fmt.Errorf("create the inventory: %w", err)
	}
	if err := memberqueue.AddIndexes(members); err != nil {
		return nil, fmt.Errorf("index the caches of the members: %w", err)
	}
	return members, nil
}

// newManager returns a manager without controllers.
func newManager(hubConfig *rest.Config, o Options, members *inventory.Inventory) (mcmanager.Manager, error) {
	lock, err := newLeaseLock(hubConfig, o)
	if err != nil {
		return nil, err
	}
	inventoryNamespace := map[string]cache.Config{o.InventoryNamespace: {}}
	mgr, err := mcmanager.New(hubConfig, members, manager.Options{
		Scheme: newHubScheme(),
		Cache: cache.Options{NewInformer: o.HubInformer, DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}:                   {Namespaces: inventoryNamespace, Label: credentialSelector()},
				&clusterinventory.ClusterProfile{}: {Namespaces: inventoryNamespace},
			}},
		Metrics:                             metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:              o.ProbeAddress,
		PprofBindAddress:                    o.PprofAddress,
		LeaderElection:                      o.LeaderElection,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		RenewDeadline:                       ptr.To(renewDeadline),
		GracefulShutdownTimeout:             ptr.To(o.ShutdownTimeout),
		Controller:                          config.Controller{SkipNameValidation: ptr.To(o.SharedProcess)},
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}

// addControllers adds the hub controller, the spoke controller and the orphan finder.
func addControllers(mgr mcmanager.Manager, o Options) error {
	local := mgr.GetLocalManager()
	sink := events.NewSink(local.GetEventRecorder(v1alpha1.ManagedBy))

	hub, err := hubcontroller.New(hubcontroller.Options{Client: local.GetClient(), APIReader: local.GetAPIReader(),
		InventoryNamespace: o.InventoryNamespace, Clock: o.Clock, Events: sink})
	if err != nil {
		return fmt.Errorf("create the hub controller: %w", err)
	}
	if err := hub.SetupWithManager(local); err != nil {
		return fmt.Errorf("add the hub controller: %w", err)
	}
	if err := local.AddMetricsServerExtraHandler(debugCacheClusters, hub.DebugHandler()); err != nil {
		return fmt.Errorf("serve %s: %w", debugCacheClusters, err)
	}

	spoke, err := spokecontroller.New(spokecontroller.Options{Hub: local, Events: sink, InventoryNamespace: o.InventoryNamespace, Clock: o.Clock,
		Typer: applyconfigurations.NewTypeConverter(memberqueue.Scheme())})
	if err != nil {
		return fmt.Errorf("create the spoke controller: %w", err)
	}
	if err := mgr.Add(spoke); err != nil {
		return fmt.Errorf("add the spoke controller: %w", err)
	}
	if err := local.AddMetricsServerExtraHandler(debugMemberCaches, spoke.StateHandler()); err != nil {
		return fmt.Errorf("serve %s: %w", debugMemberCaches, err)
	}

	finder, err := orphans.New(orphans.Options{Hub: local, InventoryNamespace: o.InventoryNamespace, Clock: o.Clock,
		Kinds: memberqueue.ChildKinds()})
	if err != nil {
		return fmt.Errorf("create the orphan finder: %w", err)
	}
	if err := mgr.Add(finder); err != nil {
		return fmt.Errorf("add the orphan finder: %w", err)
	}
	return nil
}

func newHubScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterinventory.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// credentialSelector selects the Secrets that hold a member's credential: no other
// Secret enters the cache.
func credentialSelector() labels.Selector {
	exists, err := labels.NewRequirement(v1alpha1.LabelCredentialOf, selection.Exists, nil)
	utilruntime.Must(err)
	return labels.NewSelector().Add(*exists)
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

const (
	// reconcileTimeout bounds one reconcile; all of it is spent on the hub.
	reconcileTimeout = 30 * time.Second
	// defaultWorkers is the number of CacheClusters that are reconciled at a time.
	defaultWorkers = 8
	// defaultConcurrentWrites is the number of MemberCaches that one reconcile writes
	// at a time.
	defaultConcurrentWrites = 8
)

// Options of a Reconciler.
type Options struct {
	// Client reads from the cache of the hub and writes to its API server. Required.
	Client client.Client
	// APIReader reads from the API server of the hub. Required.
	APIReader client.Reader
	// InventoryNamespace of the ClusterProfiles; v1alpha1.InventoryNamespace if empty.
	InventoryNamespace string
	// Clock of the reconciler; the real one if nil.
	Clock clock.PassiveClock
	// Events records transitions of CacheClusters; none if nil.
	Events *events.Sink
	// Workers is the number of CacheClusters that are reconciled at a time; 8 if 0.
	Workers int
	// ConcurrentWrites is the number of MemberCaches that one reconcile writes at a
	// time; 8 if 0.
	ConcurrentWrites int
}

// Reconciler places CacheClusters and summarizes what their members report.
type Reconciler struct {
	client             client.Client
	apiReader          client.Reader
	inventoryNamespace string
	clock              clock.PassiveClock
	events             *events.Sink
	workers            int
	concurrentWrites   int

	states *states
}

// New returns a Reconciler.
func New(o Options) (*Reconciler, error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("Client is required")
	case o.APIReader == nil:
		return nil, errors.New("APIReader is required")
	case o.Workers < 0 || o.ConcurrentWrites < 0:
		return nil, fmt.Errorf("Workers and ConcurrentWrites must not be negative: %d, %d", o.Workers, o.ConcurrentWrites)
	}
	if o.InventoryNamespace == "" {
		o.InventoryNamespace = v1alpha1.InventoryNamespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.ConcurrentWrites == 0 {
		o.ConcurrentWrites = defaultConcurrentWrites
	}
	return &Reconciler{
		client: o.Client, apiReader: o.APIReader, inventoryNamespace: o.InventoryNamespace, clock: o.Clock,
		events: o.Events, workers: o.Workers, concurrentWrites: o.ConcurrentWrites, states: newStates(),
	}, nil
}

// SetupWithManager adds the controller to the local manager of the hub.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.MemberCache{}, cacheClusterField, cacheClusterOf)
	if err != nil {
		return fmt.Errorf("index MemberCaches by %s: %w", cacheClusterField, err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("hub").
		For(&v1alpha1.CacheCluster{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.CacheCluster{}, handler.Funcs{DeleteFunc: r.forget}).
		Watches(&v1alpha1.MemberCache{}, memberCacheHandler()).
		Watches(&clusterinventory.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.allCacheClusters),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}))).
		// The priority queue of controller-runtime can hang at shutdown.
		WithOptions(crcontroller.Options{MaxConcurrentReconciles: r.workers, ReconciliationTimeout: reconcileTimeout, UsePriorityQueue: ptr.To(false)}).
		Complete(r)
}

// forget drops the record of a CacheCluster that was deleted.
func (r *Reconciler) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.states.forget(e.Object.GetUID())
	r.events.Forget(e.Object.GetUID())
}

// cacheClusterField indexes the MemberCaches of a CacheCluster. The field is
// immutable, whereas a label can be removed.
const cacheClusterField = "spec.cacheCluster"

func cacheClusterOf(object client.Object) []string {
	if mc, ok := object.(*v1alpha1.MemberCache); ok {
		return []string{mc.Spec.CacheCluster}
	}
	return nil
}

// allCacheClusters returns a request for every CacheCluster: a member joined, left
// or has other labels, and any placement may select it.
func (r *Reconciler) allCacheClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.CacheClusterList
	// Only names are read.
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list CacheClusters for a changed ClusterProfile")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

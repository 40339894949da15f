package inventory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
)

// Options of an Inventory.
type Options struct {
	// Hub returns the cluster of the hub. It is called after Start, because a manager is
	// created after its provider. Required.
	Hub func() cluster.Cluster
	// Namespace of the ClusterProfiles and of the credentials;
	// v1alpha1.InventoryNamespace if empty.
	Namespace string
	// Scheme, Cache and Kinds of a member's cluster. The cache holds the kinds before
	// the member is engaged. Scheme is required.
	Scheme *runtime.Scheme
	Cache  cache.Options
	Kinds  []client.Object
	// Transport wraps the HTTP transport of a member's connection, if set.
	Transport func(member string, next http.RoundTripper) http.RoundTripper
	// NewInformer returns the constructor of the informers of a member's cache; that of
	// client-go if nil.
	NewInformer func(member string) NewInformer
	// Timing of the probes; DefaultTiming if zero.
	Timing Timing
	// Clock of the inventory; the real one if nil.
	Clock clock.PassiveClock
}

// NewInformer is the constructor of an informer, as in cache.Options.
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Timing of probes. A member is disengaged at most Interval + Recheck + 2*Deadline after
// it stopped to answer.
type Timing struct {
	// Interval between the probes of a reachable member; Recheck after a failed one.
	Interval, Recheck time.Duration
	// Deadline of one probe.
	Deadline time.Duration
	// Retry is the first interval between the probes of an unreachable member. It
	// doubles up to MaxRetry.
	Retry, MaxRetry time.Duration
	// Sync bounds the first sync of a member's cache.
	Sync time.Duration
}

// DefaultTiming detects an unreachable member within 12 s, and its return within 3 s.
var DefaultTiming = Timing{
	Interval: 5 * time.Second, Recheck: time.Second, Deadline: 3 * time.Second,
	Retry: 500 * time.Millisecond, MaxRetry: 2500 * time.Millisecond, Sync: 30 * time.Second,
}

// Inventory is a multicluster provider over ClusterProfiles.
type Inventory struct {
	options  Options
	registry *registry

	lock    sync.Mutex
	members map[string]*member
	// stopping holds the done channels of members that left and may still have open
	// connections, by name.
	stopping map[string]chan struct{}
	running  sync.WaitGroup
}

var (
	_ multicluster.Provider         = &Inventory{}
	_ multicluster.ProviderRunnable = &Inventory{}
)

// New returns an Inventory that a multicluster manager starts.
func New(o Options) (*Inventory, error) {
	if o.Hub == nil {
		return nil, errors.New("Hub is required")
	}
	if o.Scheme == nil {
		return nil, errors.New("Scheme is required")
	}
	if o.Namespace == "" {
		o.Namespace = v1alpha1.InventoryNamespace
	}
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming
	}
	if t := o.Timing; min(t.Interval, t.Recheck, t.Deadline, t.Retry, t.MaxRetry, t.Sync) <= 0 {
		return nil, fmt.Errorf("Timing: %+v: every duration must be positive", t)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Inventory{options: o, registry: newRegistry(), members: map[string]*member{}, stopping: map[string]chan struct{}{}}, nil
}

// Get returns an engaged member, or an error that wraps ErrClusterNotFound.
func (i *Inventory) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	return i.registry.get(name)
}

// IndexField indexes a field in the cache of every member, now and later.
func (i *Inventory) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return i.registry.indexField(ctx, object, field, extract)
}

// Start follows ClusterProfiles and credentials until ctx ends. It returns when the
// connections of all members are closed.
func (i *Inventory) Start(ctx context.Context, aware multicluster.Aware) error {
	defer i.running.Wait()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	defer queue.ShutDown()

	unwatch, err := i.watch(ctx, queue)
	defer unwatch()
	if err != nil {
		return err
	}
	logger := log.FromContext(ctx).WithName("inventory")
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return nil
		}
		if err := i.reconcile(ctx, aware, name); err != nil && ctx.Err() == nil {
			logger.Error(err, "Failed to reconcile a ClusterProfile", "member", name)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// watch enqueues the name of a member at every event of its profile or credential.
func (i *Inventory) watch(ctx context.Context, queue workqueue.TypedInterface[string]) (unwatch func(), err error) {
	var registered []func()
	unwatch = func() {
		for _, remove := range registered {
			remove()
		}
	}
	enqueue := func(object any) {
		if name := i.memberOf(object); name != "" {
			queue.Add(name)
		}
	}
	for _, object := range []client.Object{&clusterinventory.ClusterProfile{}, &corev1.Secret{}} {
		informer, err := i.options.Hub().GetCache().GetInformer(ctx, object)
		if err != nil {
			return unwatch, fmt.Errorf("watch %T on the hub: %w", object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
		})
		if err != nil {
			return unwatch, fmt.Errorf("watch %T on the hub: %w", object, err)
		}
		registered = append(registered, func() { _ = informer.RemoveEventHandler(registration) })
	}
	return unwatch, nil
}

// memberOf returns the member that an object of an event belongs to, or an empty name.
func (i *Inventory) memberOf(object any) string {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	switch o := object.(type) {
	case *clusterinventory.ClusterProfile:
		if o.Namespace == i.options.Namespace {
			return o.Name
		}
	case *corev1.Secret:
		if o.Namespace == i.options.Namespace {
			return o.Labels[v1alpha1.LabelCredentialOf]
		}
	}
	return ""
}

// reconcile starts or stops a member as its profile requires, and hands over the
// credential.
func (i *Inventory) reconcile(ctx context.Context, aware multicluster.Aware, name string) error {
	hub := i.options.Hub().GetCache()
	profile := &clusterinventory.ClusterProfile{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: i.options.Namespace, Name: name}, profile)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ClusterProfile %s: %w", name, err)
	}
	_, usable := placement.Usable(name)
	if apierrors.IsNotFound(err) || profile.DeletionTimestamp != nil || !usable {
		i.stopMember(name)
		return nil
	}
	kubeconfig, err := i.credential(ctx, hub, name)
	if err != nil {
		return err
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	m, ok := i.members[name]
	if !ok {
		m = newMember(ctx, i, name)
		m.previous = i.stopping[name]
		delete(i.stopping, name)
		i.members[name] = m
		i.running.Go(func() { m.run(aware) })
	}
	m.setCredential(kubeconfig)
	return nil
}

// credential returns the kubeconfig in the Secret of a member, or nil without one. Of
// several Secrets, the first by name is used.
func (i *Inventory) credential(ctx context.Context, hub client.Reader, name string) ([]byte, error) {
	var secrets corev1.SecretList
	err := hub.List(ctx, &secrets, client.InNamespace(i.options.Namespace), client.MatchingLabels{v1alpha1.LabelCredentialOf: name})
	if err != nil {
		return nil, fmt.Errorf("read the credential of %s: %w", name, err)
	}
	var first *corev1.Secret
	for k := range secrets.Items {
		if s := &secrets.Items[k]; first == nil || s.Name < first.Name {
			first = s
		}
	}
	if first == nil {
		return nil, nil
	}
	return first.Data[v1alpha1.CredentialKey], nil
}

// stopMember stops a member that left. A new member of its name waits until its
// connections are closed.
func (i *Inventory) stopMember(name string) {
	i.lock.Lock()
	defer i.lock.Unlock()
	m, ok := i.members[name]
	if !ok {
		return
	}
	delete(i.members, name)
	i.stopping[name] = m.done
	m.stop()
	i.running.Go(func() {
		<-m.done
		i.lock.Lock()
		defer i.lock.Unlock()
		if i.stopping[name] == m.done {
			delete(i.stopping, name)
		}
	})
}

package inventory

import (
	"context"
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
	// Hub returns the hub's cluster; it is asked for at Start, because a manager is
	// made after its provider.
	Hub func() cluster.Cluster
	// Namespace of the ClusterProfiles and their credentials.
	Namespace string
	// Scheme, Cache and Kinds of a member's cluster: the kinds must be in its cache
	// before it is engaged.
	Scheme *runtime.Scheme
	Cache  cache.Options
	Kinds  []client.Object
	// Transport goes around the HTTP transport of a member's connection, if set.
	Transport func(member string, next http.RoundTripper) http.RoundTripper
	// NewInformer makes the informers of a member's cache; client-go's own if nil.
	NewInformer func(member string) NewInformer
	// Timing of probes; DefaultTiming if zero.
	Timing Timing
	// Clock; the real one if nil.
	Clock clock.PassiveClock
}

// NewInformer makes an informer, as cache.Options has it.
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Timing of probes. A member is lost at most Interval + Recheck + 2*Deadline after
// it fell silent.
type Timing struct {
	// Interval between probes of a member that answers, Recheck after a first
	// failure.
	Interval, Recheck time.Duration
	// Deadline of one probe.
	Deadline time.Duration
	// Retry between probes of a lost member, growing to MaxRetry.
	Retry, MaxRetry time.Duration
	// Sync bounds the first filling of a member's cache.
	Sync time.Duration
}

// DefaultTiming notices a lost member within 12 s, and its return within 3.
var DefaultTiming = Timing{
	Interval: 5 * time.Second, Recheck: time.Second, Deadline: 3 * time.Second,
	Retry: 500 * time.Millisecond, MaxRetry: 2500 * time.Millisecond, Sync: 30 * time.Second,
}

// Inventory is a multicluster provider over ClusterProfiles.
type Inventory struct {
	registry
	options Options

	lock    sync.Mutex
	members map[string]*member
	// leaving are members that may still hold connections, by name.
	leaving map[string]chan struct{}
	running sync.WaitGroup
}

var (
	_ multicluster.Provider         = &Inventory{}
	_ multicluster.ProviderRunnable = &Inventory{}
)

// New gives an Inventory that a multicluster manager starts.
func New(o Options) *Inventory {
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Inventory{
		registry: registry{engaged: map[multicluster.ClusterName]*connection{}},
		options:  o, members: map[string]*member{}, leaving: map[string]chan struct{}{},
	}
}

// Start follows ClusterProfiles and credentials until ctx is done, and returns
// when every member was let go.
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
		if err := i.follow(ctx, aware, name); err != nil && ctx.Err() == nil {
			logger.Error(err, "follow a ClusterProfile", "cluster", name)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// watch enqueues a member's name at every event of its profile or credential.
func (i *Inventory) watch(ctx context.Context, queue workqueue.TypedInterface[string]) (unwatch func(), err error) {
	var registered []func()
	unwatch = func() {
		for _, remove := range registered {
			remove()
		}
	}
	enqueue := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		switch o := object.(type) {
		case *clusterinventory.ClusterProfile:
			if o.Namespace == i.options.Namespace {
				queue.Add(o.Name)
			}
		case *corev1.Secret:
			if name := o.Labels[v1alpha1.LabelCredentialOf]; name != "" && o.Namespace == i.options.Namespace {
				queue.Add(name)
			}
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

// follow makes the running members match one profile and its credential.
func (i *Inventory) follow(ctx context.Context, aware multicluster.Aware, name string) error {
	hub := i.options.Hub().GetCache()
	profile := &clusterinventory.ClusterProfile{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: i.options.Namespace, Name: name}, profile)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ClusterProfile %s: %w", name, err)
	}
	_, usable := placement.Usable(name)
	if apierrors.IsNotFound(err) || profile.DeletionTimestamp != nil || !usable {
		i.leave(name)
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
		m.before = i.leaving[name]
		delete(i.leaving, name)
		i.members[name] = m
		i.running.Go(func() { m.run(aware) })
	}
	m.offer(kubeconfig)
	return nil
}

// credential is the kubeconfig in the member's Secret, or nil where there is
// none. Of several Secrets the first by name counts.
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

func (i *Inventory) leave(name string) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if m, ok := i.members[name]; ok {
		delete(i.members, name)
		i.leaving[name] = m.done
		m.stop()
		i.running.Go(func() { <-m.done; i.left(name, m.done) })
	}
}

// left forgets a member that has let go of everything.
func (i *Inventory) left(name string, done chan struct{}) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if i.leaving[name] == done {
		delete(i.leaving, name)
	}
}

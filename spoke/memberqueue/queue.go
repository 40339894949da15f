package memberqueue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// FirstRetry is the first retry interval of a reconcile that returned an error. It doubles
// each time, up to longestRetry.
const (
	FirstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
)

// The MemberCaches of a reconnected member are queued over a time that grows with their
// number, up to longestSpread. Otherwise the member would get all requests at once.
const (
	spreadPerCache = 2 * time.Millisecond
	longestSpread  = time.Second
)

// Member reconciles the MemberCaches of one member. All methods but Reconcile return
// quickly and are safe for use by several goroutines.
type Member interface {
	// Reconcile is called by one worker for each MemberCache at a time.
	reconcile.TypedReconciler[mcreconcile.Request]
	// Trigger records an event of a MemberCache and reports whether the event needs a
	// reconcile now.
	Trigger(key types.NamespacedName, e Event) bool
	// Forget drops the state of a MemberCache that was deleted.
	Forget(mc *v1alpha1.MemberCache)
	// Connected is called for each engagement, before its first reconcile. The cache of the
	// member is complete then.
	Connected()
	// ChildDeleted is called for each child that was deleted.
	ChildDeleted(child client.Object)
	// OldestEvent returns the age of the oldest event without a worker.
	OldestEvent() time.Duration
}

type workQueue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

// Queue is the queue and the workers of one member.
type Queue struct {
	name               string
	hub                cluster.Cluster
	inventoryNamespace string
	clock              clock.PassiveClock
	workers            int
	member             Member

	stop context.CancelFunc
	done context.Context
	// started is closed once work exists.
	started chan struct{}
	work    workQueue

	mu      sync.Mutex
	caches  map[types.NamespacedName]struct{}
	engaged *Engagement
}

func newQueue(ctx context.Context, o Options, name string) *Queue {
	q := &Queue{
		name: name, hub: o.Hub, inventoryNamespace: o.InventoryNamespace, clock: o.Clock, workers: o.Workers,
		started: make(chan struct{}), caches: map[types.NamespacedName]struct{}{},
	}
	q.done, q.stop = context.WithCancel(ctx)
	q.member = o.NewMember(q)
	return q
}

// Name returns the name of the member.
func (q *Queue) Name() string { return q.name }

// run works until the queue is dropped.
func (q *Queue) run(stopped func(member string)) {
	// Events must not wait for a queue that does not start.
	defer q.stop()
	register(q)
	defer unregister(q, stopped)
	logger := log.FromContext(q.done).WithName("spoke").WithValues("cluster", q.name)
	controller, err := crcontroller.NewTypedUnmanaged("spoke", crcontroller.TypedOptions[mcreconcile.Request]{
		// All members share one name, and so one set of metrics.
		SkipNameValidation:      ptr.To(true),
		MaxConcurrentReconciles: q.workers,
		// controller-runtime's priority queue of v0.24.1 can hang at shutdown: it hands an item to a
		// worker that has stopped, while it holds the lock that the other workers need.
		UsePriorityQueue: ptr.To(false),
		RecoverPanic:     ptr.To(true),
		RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](FirstRetry, longestRetry),
		Reconciler:       q.member,
		Logger:           logger,
		LogConstructor: func(request *mcreconcile.Request) logr.Logger {
			if request == nil {
				return logger
			}
			return logger.WithValues("namespace", request.Namespace, "memberCache", request.Name)
		},
	})
	if err == nil {
		err = controller.Watch(source.TypedFunc[mcreconcile.Request](func(_ context.Context, work workQueue) error {
			q.work = work
			close(q.started)
			return nil
		}))
	}
	if err == nil {
		err = controller.Start(q.done)
	}
	if err != nil && q.done.Err() == nil {
		logger.Error(err, "the workers of the member stopped")
	}
}

func (q *Queue) request(key types.NamespacedName) mcreconcile.Request {
	request := mcreconcile.Request{ClusterName: multicluster.ClusterName(q.name)}
	request.NamespacedName = key
	return request
}

// trigger queues a MemberCache because of an event. While the connection is unknown no
// event is queued, since connectionChanged queues all MemberCaches later.
func (q *Queue) trigger(key types.NamespacedName, e Event) {
	if q.knows(key) && q.connectionKnown() && q.member.Trigger(key, e) {
		q.enqueue(key, 0)
	}
}

// enqueue adds a MemberCache after a time. It waits for the start of the queue.
func (q *Queue) enqueue(key types.NamespacedName, wait time.Duration) {
	select {
	case <-q.started:
		q.work.AddAfter(q.request(key), wait)
	case <-q.done.Done():
	}
}

// connectionChanged queues the MemberCaches that were known when the connection changed,
// unless the connection is unknown now. Those that are added later are queued by their own
// event.
func (q *Queue) connectionChanged(keys []types.NamespacedName) {
	if !q.connectionKnown() {
		return
	}
	spread := min(time.Duration(len(keys))*spreadPerCache, longestSpread)
	for i, key := range keys {
		if !q.member.Trigger(key, Event{Type: ConnectionChanged}) {
			continue
		}
		var wait time.Duration
		if i >= q.workers {
			wait = rand.N(spread)
		}
		q.enqueue(key, wait)
	}
}

// connectionKnown reports whether a reconcile can find out anything. If the hub's cache
// fails, the reconcile fails too and is retried.
func (q *Queue) connectionKnown() bool {
	c, err := q.Connection(q.done)
	return err != nil || c.Known()
}

// keys returns the MemberCaches of the member.
func (q *Queue) keys() []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.caches))
}

// add makes a MemberCache known.
func (q *Queue) add(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.caches[key] = struct{}{}
}

func (q *Queue) remove(mc *v1alpha1.MemberCache) {
	q.mu.Lock()
	delete(q.caches, client.ObjectKeyFromObject(mc))
	q.mu.Unlock()
	q.member.Forget(mc)
}

func (q *Queue) knows(key types.NamespacedName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, known := q.caches[key]
	return known
}

// unused reports whether neither a MemberCache nor an engagement needs the queue.
func (q *Queue) unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.caches) == 0 && q.engaged == nil
}

// engagement returns the engagement, or nil while the member is disconnected.
func (q *Queue) engagement() *Engagement {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.engaged
}

// connect sets the engagement, unless it has ended already: then nothing would reset it.
// It returns the MemberCaches that are known at that moment.
func (q *Queue) connect(e *Engagement) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Context.Err() != nil {
		return nil
	}
	q.member.Connected()
	q.engaged = e
	return slices.Collect(maps.Keys(q.caches))
}

// disconnect resets the engagement of a cluster, and returns the MemberCaches.
func (q *Queue) disconnect(cl cluster.Cluster) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.engaged != nil && q.engaged.Cluster == cl {
		q.engaged = nil
	}
	return slices.Collect(maps.Keys(q.caches))
}

func (q *Queue) depth() int {
	select {
	case <-q.started:
		return q.work.Len()
	default:
		return 0
	}
}

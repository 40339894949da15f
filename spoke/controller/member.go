package controller

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

type queue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

// member is one member's queue, workers and connection.
type member struct {
	name string
	// profile is the name of the member's ClusterProfile on the hub.
	profile types.NamespacedName
	hub     cluster.Cluster
	typer   drift.Typer
	clock   clock.PassiveClock
	events  *events.Sink
	workers int
	// writes to the hub that its cache may not show yet.
	hubWrites *expectations.Writes

	writeCache *apply.WriteCache
	retries    *retries
	states     states

	stop   context.CancelFunc
	done   context.Context
	queued chan struct{}
	queue  queue

	connection sync.Mutex
	caches     map[types.NamespacedName]struct{}
	engaged    *engagement
}

// engagement is a member's cluster while it answers.
type engagement struct {
	context context.Context
	cluster cluster.Cluster
	// scalers: the cache holds the member's HorizontalPodAutoscalers.
	scalers bool
}

// A failed request to the hub is retried after firstRetry, then after twice as long each
// time, up to longestRetry.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
)

func newMember(c *Controller, name string) *member {
	done, stop := context.WithCancel(c.context)
	return &member{
		name: name, profile: types.NamespacedName{Namespace: c.InventoryNamespace, Name: name},
		hub: c.Hub, typer: c.Typer, clock: c.Clock, events: c.Events, hubWrites: &c.writes, workers: c.Workers,
		writeCache: apply.NewWriteCache(),
		retries:    newRetries(),
		stop:       stop, done: done,
		queued: make(chan struct{}),
		caches: map[types.NamespacedName]struct{}{},
	}
}

// run works the member's queue off until the member is dropped.
func (m *member) run(ctx context.Context) {
	// Whoever waits for a queue that never came to be is let go.
	defer m.stop()
	beginWork(m)
	defer endWork(m)
	logger := log.FromContext(ctx).WithName("spoke").WithValues("cluster", m.name)
	controller, err := crcontroller.NewTypedUnmanaged("spoke", crcontroller.TypedOptions[mcreconcile.Request]{
		// All members share one name, and so one set of metrics.
		SkipNameValidation:      ptr.To(true),
		MaxConcurrentReconciles: m.workers,
		// controller-runtime's priority queue of v0.24.1 can hang when it is shut down: it hands
		// an item to a worker that has left, and holds the lock that the others need.
		UsePriorityQueue: ptr.To(false),
		RecoverPanic:     ptr.To(true),
		RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](firstRetry, longestRetry),
		Reconciler:       m,
		Logger:           logger,
	})
	if err == nil {
		err = controller.Watch(source.TypedFunc[mcreconcile.Request](func(_ context.Context, q queue) error {
			m.queue = q
			close(m.queued)
			return nil
		}))
	}
	if err == nil {
		err = controller.Start(m.done)
	}
	if err != nil && m.done.Err() == nil {
		logger.Error(err, "a member's workers stopped")
	}
}

func (m *member) request(key types.NamespacedName) mcreconcile.Request {
	request := mcreconcile.Request{ClusterName: multicluster.ClusterName(m.name)}
	request.NamespacedName = key
	return request
}

// enqueue is for events; retries come by themselves.
func (m *member) enqueue(key types.NamespacedName) {
	m.states.record(key, event, false, m.clock.Now())
	select {
	case <-m.queued:
		m.queue.Add(m.request(key))
	case <-m.done.Done():
	}
}

// A member with many MemberCaches is not met with all of them at once when it
// returns: they are spread over a time that grows with their number, up to wakeSpread.
const (
	wakeEach   = 2 * time.Millisecond
	wakeSpread = time.Second
)

// wake enqueues every MemberCache of the member.
func (m *member) wake() {
	m.connection.Lock()
	keys := make([]types.NamespacedName, 0, len(m.caches))
	for key := range m.caches {
		keys = append(keys, key)
	}
	m.connection.Unlock()
	spread := min(time.Duration(len(keys))*wakeEach, wakeSpread)
	for n, key := range keys {
		m.states.record(key, reconnection, false, m.clock.Now())
		if n < m.workers {
			m.enqueue(key)
			continue
		}
		m.enqueueAfter(key, rand.N(spread))
	}
}

// enqueueAfter is enqueue, a moment later.
func (m *member) enqueueAfter(key types.NamespacedName, wait time.Duration) {
	select {
	case <-m.queued:
		m.queue.AddAfter(m.request(key), wait)
	case <-m.done.Done():
	}
}

func (m *member) adopt(key types.NamespacedName) {
	m.connection.Lock()
	defer m.connection.Unlock()
	m.caches[key] = struct{}{}
}

func (m *member) forget(key types.NamespacedName) {
	m.connection.Lock()
	defer m.connection.Unlock()
	delete(m.caches, key)
	m.states.forget(key)
}

func (m *member) idle() bool {
	m.connection.Lock()
	defer m.connection.Unlock()
	return len(m.caches) == 0 && m.engaged == nil
}

// connected gives the engagement, or nil while the member does not answer.
func (m *member) connected() *engagement {
	m.connection.Lock()
	defer m.connection.Unlock()
	return m.engaged
}

// connect notes an engagement, unless it has ended already: then nobody would
// take it back.
func (m *member) connect(ctx context.Context, cl cluster.Cluster, scalers bool) {
	m.connection.Lock()
	defer m.connection.Unlock()
	if ctx.Err() == nil {
		m.writeCache.Reset()
		m.engaged = &engagement{context: ctx, cluster: cl, scalers: scalers}
	}
}

func (m *member) watch(ctx context.Context, cl cluster.Cluster, scalers bool) error {
	if scalers {
		informer, err := cl.GetCache().GetInformer(ctx, &autoscalingv2.HorizontalPodAutoscaler{})
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(m.scalerHandler()); err != nil {
			return err
		}
	}
	for _, object := range MemberKinds() {
		informer, err := cl.GetCache().GetInformer(ctx, object)
		if err != nil {
			return err
		}
		// The handler goes with the informer, and the informer with the cluster.
		if _, err := informer.AddEventHandler(m.childHandler()); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) disengage(cl cluster.Cluster) {
	m.connection.Lock()
	if m.engaged != nil && m.engaged.cluster == cl {
		m.engaged = nil
	}
	m.connection.Unlock()
	m.wake()
}

// childHandler turns events of children and pods into requests. A child that
// lost its label leaves the watch as deleted, with its last labels.
func (m *member) childHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { m.onChild(object) },
		UpdateFunc: func(old, object any) {
			if unchanged(old, object) {
				return
			}
			m.onChild(old)
			m.onChild(object)
		},
		DeleteFunc: func(object any) {
			object = lastKnown(object)
			m.onChild(object)
			m.onGone(object)
		},
	}
}

func (m *member) onChild(object any) {
	child, ok := object.(metav1.Object)
	if !ok {
		return
	}
	cache := child.GetLabels()[v1alpha1.LabelCacheCluster]
	if cache == "" {
		return
	}
	key := types.NamespacedName{Namespace: child.GetNamespace(), Name: cache + "." + m.name}
	if _, isPod := object.(*corev1.Pod); !isPod {
		m.states.record(key, event, true, m.clock.Now())
	}
	m.enqueue(key)
}

func (m *member) onGone(object any) {
	child, ok := object.(client.Object)
	if !ok {
		return
	}
	if gvk, err := apiutil.GVKForObject(child, memberScheme); err == nil {
		m.writeCache.Forget(apply.Key{Kind: gvk, Name: child.GetName()}, child.GetNamespace(), child.GetUID())
	}
}

// unchanged filters resyncs, and of pods everything that observe does not read.
func unchanged(old, object any) bool {
	before, ok1 := old.(metav1.Object)
	after, ok2 := object.(metav1.Object)
	if ok1 && ok2 && before.GetResourceVersion() == after.GetResourceVersion() {
		return true
	}
	oldPod, ok1 := old.(*corev1.Pod)
	newPod, ok2 := object.(*corev1.Pod)
	return ok1 && ok2 && observe.Trouble(oldPod) == observe.Trouble(newPod)
}

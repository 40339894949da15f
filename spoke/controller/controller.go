package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Options of a Controller.
type Options struct {
	// Hub holds the MemberCaches and ClusterProfiles.
	Hub cluster.Cluster
	// InventoryNamespace of the ClusterProfiles.
	InventoryNamespace string
	// Typer knows the schema of the children.
	Typer drift.Typer
	// Workers of each member; 16 if 0. They mostly wait for its API server, which decides
	// itself how much it takes on.
	Workers int
	// Clock; the real one if nil.
	Clock clock.PassiveClock
	// Events records transitions of MemberCaches; none if nil.
	Events *events.Sink
}

// Controller holds one set of workers for each member. It is started once.
type Controller struct {
	Options
	started chan struct{}
	// writes to the hub, which its cache may not show yet.
	writes expectations.Writes

	mu      sync.Mutex
	context context.Context
	members map[string]*member
	running sync.WaitGroup
}

var _ mcmanager.Runnable = &Controller{}

// New gives a Controller that is to be added to a multicluster manager.
func New(o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Controller{Options: o, started: make(chan struct{}), members: map[string]*member{}}
}

// NeedLeaderElection says that only the leader writes to members.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start watches the hub and returns when ctx is done and every worker stopped.
func (c *Controller) Start(ctx context.Context) error {
	c.mu.Lock()
	c.context = ctx
	c.mu.Unlock()
	close(c.started)
	defer c.running.Wait()

	stop, err := c.watchHub(ctx)
	defer stop()
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// watchHub turns events of MemberCaches and ClusterProfiles into requests.
func (c *Controller) watchHub(ctx context.Context) (stop func(), err error) {
	var remove []func()
	stop = func() {
		for _, r := range remove {
			r()
		}
	}
	for _, source := range []struct {
		object client.Object
		handle toolscache.ResourceEventHandler
	}{
		{&v1alpha1.MemberCache{}, handler(c.onMemberCache)},
		{&clusterinventory.ClusterProfile{}, filtered(c.onProfile)},
	} {
		informer, err := c.Hub.GetCache().GetInformer(ctx, source.object)
		if err != nil {
			return stop, fmt.Errorf("watch %T on the hub: %w", source.object, err)
		}
		registration, err := informer.AddEventHandler(source.handle)
		if err != nil {
			return stop, fmt.Errorf("watch %T on the hub: %w", source.object, err)
		}
		remove = append(remove, func() { _ = informer.RemoveEventHandler(registration) })
	}
	return stop, nil
}

func handler(handle func(object any, gone bool)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, false) },
		UpdateFunc: func(_, object any) { handle(object, false) },
		DeleteFunc: func(object any) { handle(lastKnown(object), true) },
	}
}

// filtered passes on what changes what is known of the connection: whoever publishes
// a ClusterProfile may write to it as often as it likes.
func filtered(handle func(object any, gone bool)) toolscache.ResourceEventHandlerFuncs {
	handlers := handler(handle)
	handlers.UpdateFunc = func(old, object any) {
		if !sameConnection(old, object) {
			handle(object, false)
		}
	}
	return handlers
}

func sameConnection(old, object any) bool {
	before, ok1 := old.(*clusterinventory.ClusterProfile)
	after, ok2 := object.(*clusterinventory.ClusterProfile)
	if !ok1 || !ok2 || before.UID != after.UID {
		return false
	}
	return equality.Semantic.DeepEqual(meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReachable),
		meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReachable))
}

func lastKnown(object any) any {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}

func (c *Controller) onMemberCache(object any, gone bool) {
	mc, ok := object.(*v1alpha1.MemberCache)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(mc)
	if gone {
		if m := c.find(mc.Spec.Cluster); m != nil {
			m.forget(key)
			c.writes.Forget(mc.UID)
			c.Events.Forget(mc.UID)
			c.drop(m)
		}
		return
	}
	m := c.member(mc.Spec.Cluster, func(m *member) { m.adopt(key) })
	// Our own report is no reason to ask the member again: while it fails, each try
	// would be two.
	if m != nil && !c.writes.Own(mc) {
		m.enqueue(key)
	}
}

// onProfile wakes every MemberCache of a member whose connection changed.
func (c *Controller) onProfile(object any, _ bool) {
	profile, ok := object.(*clusterinventory.ClusterProfile)
	if !ok || profile.Namespace != c.InventoryNamespace {
		return
	}
	if m := c.find(profile.Name); m != nil {
		m.wake()
	}
}

// Engage gives a member's cluster while it answers; its cache must hold
// MemberKinds, with the indexes of IndexMembers, already. ctx ends when the member is lost or leaves.
func (c *Controller) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	select {
	case <-c.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	scalers, err := watchScalers(ctx, cl)
	if err != nil {
		return fmt.Errorf("engage %q: %w", name, err)
	}
	m := c.member(string(name), func(m *member) { m.connect(ctx, cl, scalers) })
	if m == nil {
		return fmt.Errorf("engage %q: the controller is stopping", name)
	}
	// Before anything can fail: an engagement must not outlive its context.
	context.AfterFunc(ctx, func() {
		m.disengage(cl)
		c.drop(m)
	})
	if err := m.watch(ctx, cl, scalers); err != nil {
		return fmt.Errorf("engage %q: %w", name, err)
	}
	m.wake()
	return nil
}

func (c *Controller) find(name string) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[name]
}

// member gives a member's workers and starts them if there are none; nil when
// the controller is stopping. need gives them something to do before anybody else
// can find them idle and drop them.
func (c *Controller) member(name string, need func(*member)) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.members[name]; ok {
		need(m)
		return m
	}
	if c.context == nil || c.context.Err() != nil {
		return nil
	}
	m := newMember(c, name)
	need(m)
	c.members[name] = m
	c.running.Go(func() { m.run(c.context) })
	return m
}

// drop stops a member's workers once nothing needs them.
func (c *Controller) drop(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.idle() && c.members[m.name] == m {
		delete(c.members, m.name)
		m.stop()
	}
}

// profileKey of a member's ClusterProfile on the hub.
func (c *Controller) profileKey(member string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.InventoryNamespace, Name: member}
}

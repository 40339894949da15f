package memberqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// defaultWorkers of each member. They mostly wait for its API server, which limits its own
// load.
const defaultWorkers = 16

// Options of Queues.
type Options struct {
	// Hub holds the MemberCaches and ClusterProfiles.
	Hub cluster.Cluster
	// InventoryNamespace is the namespace of the ClusterProfiles.
	InventoryNamespace string
	// NewMember returns the Member of a new queue.
	NewMember func(*Queue) Member
	// Stopped is called when no queue of this process serves a member any more. nil: no
	// call.
	Stopped func(member string)
	// Workers of each member; 16 if 0.
	Workers int
	// Clock; the real one if nil.
	Clock clock.PassiveClock
}

// Queues holds one queue for each member.
type Queues struct {
	options Options
	started chan struct{}

	mu      sync.Mutex
	context context.Context
	queues  map[string]*Queue
	running sync.WaitGroup
}

// New returns Queues that are not started.
func New(o Options) (*Queues, error) {
	if o.Hub == nil || o.NewMember == nil {
		return nil, errors.New("memberqueue: Hub and NewMember are required")
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Stopped == nil {
		o.Stopped = func(string) {}
	}
	return &Queues{options: o, started: make(chan struct{}), queues: map[string]*Queue{}}, nil
}

// Start watches the hub, and returns when ctx is done and every worker has stopped. It is
// called once.
func (s *Queues) Start(ctx context.Context) error {
	s.mu.Lock()
	s.context = ctx
	s.mu.Unlock()
	close(s.started)
	defer s.running.Wait()

	stop, err := s.watchHub(ctx)
	defer stop()
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// watchHub handles the events of ClusterProfiles and MemberCaches. The first come first:
// whether a MemberCache is queued depends on them.
func (s *Queues) watchHub(ctx context.Context) (stop func(), err error) {
	var remove []func()
	stop = func() {
		for _, r := range remove {
			r()
		}
	}
	for _, source := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&clusterinventory.ClusterProfile{}, s.profileHandler()},
		{&v1alpha1.MemberCache{}, s.memberCacheHandler()},
	} {
		informer, err := s.options.Hub.GetCache().GetInformer(ctx, source.object)
		if err != nil {
			return stop, fmt.Errorf("watch %T on the hub: %w", source.object, err)
		}
		registration, err := informer.AddEventHandler(source.handler)
		if err != nil {
			return stop, fmt.Errorf("watch %T on the hub: %w", source.object, err)
		}
		remove = append(remove, func() { _ = informer.RemoveEventHandler(registration) })
	}
	return stop, nil
}

// Engage connects a member's cluster. Its cache must be synced and hold Kinds with the
// indexes of IndexMembers. ctx ends when the member is lost or leaves.
func (s *Queues) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	select {
	case <-s.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	autoscalers, err := watchAutoscalers(ctx, cl)
	if err != nil {
		return fmt.Errorf("engage %q: %w", name, err)
	}
	// The handlers go with the informers, and the informers with the cluster.
	if err := s.watchMember(ctx, string(name), cl, autoscalers); err != nil {
		return fmt.Errorf("engage %q: %w", name, err)
	}
	var caches []types.NamespacedName
	q := s.queue(string(name), func(q *Queue) {
		caches = q.connect(&Engagement{Context: ctx, Cluster: cl, Autoscalers: autoscalers})
	})
	if q == nil {
		return fmt.Errorf("engage %q: the controller is stopping", name)
	}
	q.connectionChanged(caches)
	context.AfterFunc(ctx, func() {
		q.connectionChanged(q.disconnect(cl))
		s.drop(q)
	})
	return nil
}

// Each calls visit for each member that has a queue.
func (s *Queues) Each(visit func(name string, m Member)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, q := range s.queues {
		visit(name, q.member)
	}
}

// find returns the queue of a member, or nil.
func (s *Queues) find(name string) *Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[name]
}

// queue returns the queue of a member and starts one if there is none; nil while the
// process stops. use makes the queue needed before anyone can find it unused and drop it.
func (s *Queues) queue(name string, use func(*Queue)) *Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.queues[name]; ok {
		use(q)
		return q
	}
	if s.context == nil || s.context.Err() != nil {
		return nil
	}
	q := newQueue(s.context, s.options, name)
	use(q)
	s.queues[name] = q
	s.running.Go(func() { q.run(s.options.Stopped) })
	return q
}

// drop stops the queue of a member once nothing needs it.
func (s *Queues) drop(q *Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.unused() && s.queues[q.name] == q {
		delete(s.queues, q.name)
		q.stop()
	}
}

// memberCacheHandler adds and removes MemberCaches, and triggers them.
func (s *Queues) memberCacheHandler() toolscache.ResourceEventHandler {
	changed := func(object any) {
		mc, ok := object.(*v1alpha1.MemberCache)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(mc)
		if q := s.queue(mc.Spec.Cluster, func(q *Queue) { q.add(key) }); q != nil {
			q.trigger(key, Event{Type: MemberCacheChanged, Object: mc})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			mc, ok := lastKnown(object).(*v1alpha1.MemberCache)
			if !ok {
				return
			}
			if q := s.find(mc.Spec.Cluster); q != nil {
				q.remove(mc)
				s.drop(q)
			}
		},
	}
}

// profileHandler queues the MemberCaches of a member that is not engaged when the reason
// for it changes. Engage and the end of an engagement cover all other changes.
func (s *Queues) profileHandler() toolscache.ResourceEventHandler {
	changed := func(object any) {
		profile, ok := lastKnown(object).(*clusterinventory.ClusterProfile)
		if !ok || profile.Namespace != s.options.InventoryNamespace {
			return
		}
		if q := s.find(profile.Name); q != nil && q.engagement() == nil {
			q.connectionChanged(q.keys())
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, object any) {
			if !sameConnection(old, object) {
				changed(object)
			}
		},
		DeleteFunc: changed,
	}
}

func lastKnown(object any) any {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}

// keyOf returns the key of the MemberCache of a cache in a member.
func keyOf(namespace, cache, member string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: cache + "." + member}
}

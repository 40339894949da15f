package orphans

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// FieldManager of the condition; the inventory's own conditions have another.
const FieldManager = "reconcile-lab-leftovers"

// Options of a Finder.
type Options struct {
	// Hub holds the MemberCaches and ClusterProfiles.
	Hub cluster.Cluster
	// InventoryNamespace of the ClusterProfiles.
	InventoryNamespace string
	// Kinds of children, which a member's cache holds.
	Kinds []client.Object
	// Interval between looks; ten minutes if 0. Calm is how long a look waits for
	// others that are asked for at the same time; a second if 0.
	Interval, Calm time.Duration
	// Clock; the real one if nil.
	Clock clock.PassiveClock
}

// deadline bounds what one look asks of a member and of the hub.
const deadline = 10 * time.Second

// Finder looks in every member that is engaged.
type Finder struct {
	Options
	started chan struct{}

	mu      sync.Mutex
	looks   map[string]chan struct{}
	left    map[string]bool
	stopped bool
	running sync.WaitGroup
}

var _ mcmanager.Runnable = &Finder{}

// New gives a Finder that is to be added to a multicluster manager.
func New(o Options) *Finder {
	if o.Interval == 0 {
		o.Interval = 10 * time.Minute
	}
	if o.Calm == 0 {
		o.Calm = time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Finder{Options: o, started: make(chan struct{}), looks: map[string]chan struct{}{}, left: map[string]bool{}}
}

// NeedLeaderElection says that only the leader writes conditions.
func (f *Finder) NeedLeaderElection() bool { return true }

// Start watches MemberCaches that go, until ctx is done.
func (f *Finder) Start(ctx context.Context) error {
	informer, err := f.Hub.GetCache().GetInformer(ctx, &v1alpha1.MemberCache{})
	if err != nil {
		return fmt.Errorf("watch MemberCaches on the hub: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if _, ok := object.(*v1alpha1.MemberCache); ok {
			f.poke()
		}
	}})
	if err != nil {
		return fmt.Errorf("watch MemberCaches on the hub: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	close(f.started)
	<-ctx.Done()
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.running.Wait()
	return nil
}

// poke asks for a look at each member that is engaged: a cluster may be a member under
// two names.
func (f *Finder) poke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, look := range f.looks {
		again(look)
	}
}

// known says that something was found in a member when it was looked at last.
func (f *Finder) known(member string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left[member]
}

func again(look chan struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}

// Engage looks at a member until ctx ends.
func (f *Finder) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	select {
	case <-f.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	look := make(chan struct{}, 1)
	again(look)
	if !f.begin(ctx, string(name), cl, look) {
		return fmt.Errorf("engage %q: the finder is stopping", name)
	}
	for _, object := range f.Kinds {
		informer, err := cl.GetCache().GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T in %s: %w", object, name, err)
		}
		// The handler goes with the informer, and the informer with the cluster.
		gone := func(any) {
			// While none are known there is nothing that this could change.
			if f.known(string(name)) {
				again(look)
			}
		}
		// Such as one that is taken over.
		marked := func(before, after any) {
			if markOf(before) != markOf(after) {
				gone(after)
			}
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: marked, DeleteFunc: gone}); err != nil {
			return fmt.Errorf("watch %T in %s: %w", object, name, err)
		}
	}
	return nil
}

func markOf(object any) string {
	if o, ok := object.(metav1.Object); ok {
		return o.GetAnnotations()[v1alpha1.AnnotationOwner]
	}
	return ""
}

func (f *Finder) begin(ctx context.Context, name string, cl cluster.Cluster, look chan struct{}) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return false
	}
	f.looks[name] = look
	// Until a look has shown that there are none.
	f.left[name] = true
	f.running.Go(func() { f.follow(ctx, name, cl, look) })
	return true
}

// follow looks whenever it is asked to, at most once in a while, and every interval.
func (f *Finder) follow(ctx context.Context, name string, cl cluster.Cluster, look chan struct{}) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.looks[name] == look {
			delete(f.looks, name)
			delete(f.left, name)
		}
	}()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("leftovers").WithValues("cluster", name))
	interval := time.NewTicker(f.Interval)
	defer interval.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
		case <-interval.C:
		}
		// Members that are engaged together do not look together.
		calm := time.NewTimer(f.Calm + rand.N(f.Calm))
		select {
		case <-ctx.Done():
			calm.Stop()
			return
		case <-calm.C:
		}
		if err := f.look(ctx, name, cl); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "look for children that nobody looks after")
		}
	}
}

// look finds what is left in a member and tells it.
func (f *Finder) look(ctx context.Context, name string, cl cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	left, err := f.suspect(ctx, name, cl)
	if err != nil {
		return err
	}
	suspected := len(left) > 0
	if suspected {
		// From now on whatever goes may change the answer.
		f.mu.Lock()
		f.left[name] = true
		f.mu.Unlock()
		if left, err = f.confirm(ctx, name, cl, left); err != nil {
			return err
		}
	}
	if err := f.tell(ctx, name, left); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, engaged := f.looks[name]; engaged && !suspected {
		f.left[name] = false
	}
	return nil
}

// suspect compares the caches.
func (f *Finder) suspect(ctx context.Context, name string, cl cluster.Cluster) ([]child, error) {
	var children []child
	for _, object := range f.Kinds {
		list, kind, err := listOf(cl, object)
		if err != nil {
			return nil, err
		}
		if err := cl.GetCache().List(ctx, list, client.HasLabels{v1alpha1.LabelCacheCluster}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s in %s: %w", kind, name, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				children = append(children, childOf(kind, o))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var caches v1alpha1.MemberCacheList
	// Only read.
	if err := f.Hub.GetCache().List(ctx, &caches, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MemberCaches: %w", err)
	}
	return unowned(children, ownedBy(caches.Items, name)), nil
}

func listOf(cl cluster.Cluster, object client.Object) (client.ObjectList, string, error) {
	gvk, err := cl.GetClient().GroupVersionKindFor(object)
	if err != nil {
		return nil, "", err
	}
	made, err := cl.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, "", err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, "", fmt.Errorf("%sList is no list", gvk.Kind)
	}
	return list, gvk.Kind, nil
}

// confirm asks both API servers: either cache may be behind.
func (f *Finder) confirm(ctx context.Context, name string, cl cluster.Cluster, suspects []child) ([]child, error) {
	var there []child
	for i := range suspects {
		s := &suspects[i]
		for _, object := range f.Kinds {
			gvk, err := cl.GetClient().GroupVersionKindFor(object)
			if err != nil {
				return nil, err
			}
			if gvk.Kind != s.kind {
				continue
			}
			now := &metav1.PartialObjectMetadata{}
			now.SetGroupVersionKind(gvk)
			err = cl.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, now)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("look at %s in %s: %w", s, name, err)
			}
			if err == nil && now.Labels[v1alpha1.LabelCacheCluster] != "" {
				there = append(there, childOf(s.kind, now))
			}
		}
	}
	// After the children: a MemberCache is there before any of its children.
	var caches v1alpha1.MemberCacheList
	if err := f.Hub.GetAPIReader().List(ctx, &caches); err != nil {
		return nil, fmt.Errorf("list MemberCaches: %w", err)
	}
	return unowned(there, ownedBy(caches.Items, name)), nil
}

// tell writes the condition if it says anything new.
func (f *Finder) tell(ctx context.Context, name string, left []child) error {
	profile := &clusterinventory.ClusterProfile{}
	if err := f.Hub.GetCache().Get(ctx, client.ObjectKey{Namespace: f.InventoryNamespace, Name: name}, profile); err != nil {
		return client.IgnoreNotFound(err)
	}
	old := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionLeftovers)
	conditions := []any{}
	if len(left) > 0 {
		text := message(name, left)
		since := f.Clock.Now()
		if old != nil && old.Status == metav1.ConditionTrue {
			if old.Message == text {
				return nil
			}
			since = old.LastTransitionTime.Time
		}
		conditions = append(conditions, map[string]any{"type": v1alpha1.ConditionLeftovers, "status": string(metav1.ConditionTrue),
			"reason": v1alpha1.ReasonLeftoversFound, "message": text, "lastTransitionTime": since.UTC().Format(time.RFC3339)})
	} else if old == nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	u.SetGroupVersionKind(clusterinventory.GroupVersion.WithKind("ClusterProfile"))
	u.SetNamespace(profile.Namespace)
	u.SetName(profile.Name)
	err := f.Hub.GetClient().Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the condition of ClusterProfile %s: %w", name, err)
	}
	return nil
}

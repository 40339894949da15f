package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
)

// deadline of one reconcile; all of it is spent on the hub.
const deadline = 30 * time.Second

// behind is how soon to look again when the hub's cache turned out to be old; its
// event usually comes first.
const behind = 100 * time.Millisecond

// Reconciler places CacheClusters and sums up what came of it.
type Reconciler struct {
	// Client reads from the hub's cache and writes to its API server; Live reads
	// from the API server itself.
	Client client.Client
	Live   client.Reader
	// InventoryNamespace of the ClusterProfiles.
	InventoryNamespace string
	Clock              clock.PassiveClock
	// Events records transitions of CacheClusters; none if nil.
	Events *events.Sink

	// writes to CacheClusters, which the cache may not show yet.
	writes  expectations.Writes
	pace    pace
	removed removed
}

// SetupWithManager adds the controller to the hub's own manager: it never touches
// a member.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.MemberCache{}, cacheField, cacheOf)
	if err != nil {
		return fmt.Errorf("index MemberCaches: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("hub").
		For(&v1alpha1.CacheCluster{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.CacheCluster{}, handler.Funcs{DeleteFunc: r.forget}).
		Watches(&v1alpha1.MemberCache{}, gathered()).
		Watches(&clusterinventory.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.everyCache),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}))).
		// The priority queue can hang when it is shut down, see the spoke's.
		WithOptions(crcontroller.Options{MaxConcurrentReconciles: 8, ReconciliationTimeout: deadline, UsePriorityQueue: ptr.To(false)}).
		Complete(r)
}

// forget drops what is remembered of a CacheCluster that is gone.
func (r *Reconciler) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.pace.forget(e.Object.GetUID())
	r.writes.Forget(e.Object.GetUID())
	r.removed.forget(e.Object.GetUID())
	r.Events.Forget(e.Object.GetUID())
}

// cacheField finds the MemberCaches of a CacheCluster. It is immutable, where a
// label could be removed.
const cacheField = "spec.cacheCluster"

func cacheOf(object client.Object) []string {
	if mc, ok := object.(*v1alpha1.MemberCache); ok {
		return []string{mc.Spec.CacheCluster}
	}
	return nil
}

// everyCache asks for every CacheCluster again: a member came, left or got other
// labels.
func (r *Reconciler) everyCache(ctx context.Context, _ client.Object) []reconcile.Request {
	var caches v1alpha1.CacheClusterList
	if err := r.Client.List(ctx, &caches); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list CacheClusters for a changed member")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(caches.Items))
	for i := range caches.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&caches.Items[i])})
	}
	return requests
}

// Reconcile runs the stages for one CacheCluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	snapshot, err := r.read(ctx, request.NamespacedName)
	if err != nil || snapshot == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan := decide(snapshot)
	if err := r.confirm(ctx, snapshot, &plan); err != nil {
		return again(err)
	}
	err = r.apply(ctx, snapshot, &plan)
	if gone, failed := r.release(ctx, snapshot, &plan); gone || failed != nil {
		return again(failed)
	}
	// The status is written also when applying failed: it then says what was done.
	later, failed := r.write(ctx, snapshot, &plan)
	if err = firstOf(err, failed); err != nil {
		return again(err)
	}
	return ctrl.Result{RequeueAfter: later}, nil
}

// again turns an error into the time of the next try.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, errBehind) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	return ctrl.Result{}, err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*snapshot, error) {
	s := &snapshot{now: r.Clock.Now(), cache: &v1alpha1.CacheCluster{}}
	if err := r.Client.Get(ctx, key, s.cache); err != nil {
		return nil, err
	}
	if r.writes.Behind(s.cache) {
		// The event of our own write is on the way and asks again.
		return nil, nil
	}
	if err := r.readMembers(ctx, r.Client, s); err != nil {
		return nil, err
	}
	var caches v1alpha1.MemberCacheList
	if err := r.Client.List(ctx, &caches, client.InNamespace(key.Namespace), client.MatchingFields{cacheField: key.Name}); err != nil {
		return nil, fmt.Errorf("list MemberCaches: %w", err)
	}
	s.caches = caches.Items
	return s, nil
}

// apply writes the plan. One member's failure does not keep the next one waiting;
// the first error is returned.
func (r *Reconciler) apply(ctx context.Context, s *snapshot, p *plan) error {
	var first error
	if s.cache.DeletionTimestamp == nil && (len(p.create) > 0 || s.owns()) {
		// Without it nothing new is begun; what is there is looked after all the same.
		if first = r.hold(ctx, s.cache); first != nil && len(p.create) > 0 {
			return first
		}
	}
	created := make([]error, len(p.create))
	var all sync.WaitGroup
	for i, mc := range p.create {
		all.Go(func() { created[i] = r.Client.Create(ctx, mc) })
	}
	all.Wait()
	for i, mc := range p.create {
		err := created[i]
		if apierrors.IsAlreadyExists(err) {
			first = firstOf(first, r.meet(ctx, s.cache, mc, p))
			continue
		}
		first = firstOf(first, r.report(mc, p, err))
	}
	for _, mc := range p.update {
		before := existing(s, mc.Name)
		first = firstOf(first, r.report(mc, p, r.Client.Patch(ctx, mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	for _, mc := range r.removed.take(s.cache.UID, p.remove) {
		err := r.Client.Delete(ctx, mc, client.Preconditions{UID: &mc.UID})
		if err == nil {
			r.removed.note(s.cache.UID, mc)
		}
		first = firstOf(first, client.IgnoreNotFound(err))
	}
	for _, mc := range p.abandon {
		first = firstOf(first, r.abandon(ctx, s.cache, mc))
	}
	return first
}

// hold puts the finalizer on a CacheCluster before it has any children, and back
// while it has some.
func (r *Reconciler) hold(ctx context.Context, cc *v1alpha1.CacheCluster) error {
	before := cc.DeepCopy()
	if !controllerutil.AddFinalizer(cc, v1alpha1.Finalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, cc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.writes.Wrote(cc)
	return nil
}

// report hands the verdict what the API server answered about a MemberCache.
func (r *Reconciler) report(mc *v1alpha1.MemberCache, p *plan, err error) error {
	entry := p.entry(mc.Spec.Cluster)
	switch {
	case entry == nil:
	case err == nil:
		entry.Cache = mc
	case apierrors.IsInvalid(err):
		// Trying again changes nothing: say so, and wait for the next generation.
		entry.Problem = rejected(err)
		return nil
	case apierrors.IsForbidden(err):
		// Nothing announces that a quota was raised or a right given: tried again, slower
		// each time.
		entry.Problem = rejected(err)
	}
	return err
}

// meet looks at what stands where a MemberCache was to be created: our own, which
// the cache does not show yet, or one of somebody else.
func (r *Reconciler) meet(ctx context.Context, cc *v1alpha1.CacheCluster, mc *v1alpha1.MemberCache, p *plan) error {
	there := &v1alpha1.MemberCache{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(mc), there); err != nil {
		return fmt.Errorf("look at MemberCache %s: %w", mc.Name, err)
	}
	entry := p.entry(mc.Spec.Cluster)
	if entry == nil {
		return nil
	}
	if metav1.IsControlledBy(there, cc) {
		entry.Cache = there
		return nil
	}
	entry.Problem = nameConflict(there)
	// Nothing announces that it is gone, so it is tried again, slower each time.
	return errors.New(entry.Problem.Message)
}

func rejected(err error) *v1alpha1.Outcome {
	class := v1alpha1.ClassInvalid
	hint := "correct the field that the message names"
	if apierrors.IsForbidden(err) {
		class, hint = v1alpha1.ClassBlocked, "the hub's API server forbids it: check quota and the hub manager's rights"
	}
	var status apierrors.APIStatus
	message := err.Error()
	if errors.As(err, &status) {
		message = status.Status().Message
	}
	return &v1alpha1.Outcome{Class: class, Reason: v1alpha1.ReasonRejected, Message: message, Hint: hint}
}

// release lets a CacheCluster go once no MemberCache of it is left. The API server
// itself is asked, since a cache may not know the latest one yet.
func (r *Reconciler) release(ctx context.Context, s *snapshot, p *plan) (gone bool, err error) {
	if !p.verdict.Deleting || len(p.verdict.Members) > 0 {
		return false, nil
	}
	var left v1alpha1.MemberCacheList
	err = r.Live.List(ctx, &left, client.InNamespace(s.cache.Namespace))
	if err != nil {
		return false, fmt.Errorf("look for MemberCaches that are left: %w", err)
	}
	for i := range left.Items {
		if metav1.IsControlledBy(&left.Items[i], s.cache) {
			return false, nil
		}
	}
	released := s.cache.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
		return true, nil
	}
	return true, client.IgnoreNotFound(r.Client.Patch(ctx, released, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{})))
}

// write saves the verdict if it says anything new. later is when a verdict that was
// put off is due, or 0.
func (r *Reconciler) write(ctx context.Context, s *snapshot, p *plan) (later time.Duration, err error) {
	updated := s.cache.DeepCopy()
	updated.Status = status.Summarize(&s.cache.Status, p.verdict)
	if equality.Semantic.DeepEqual(updated.Status, s.cache.Status) {
		return 0, nil
	}
	if later := r.pace.hasty(s.cache.UID, &s.cache.Status, &updated.Status, s.now); later > 0 {
		return later, nil
	}
	err = r.Client.Status().Patch(ctx, updated, client.MergeFromWithOptions(s.cache, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	r.writes.Wrote(updated)
	r.pace.note(updated.UID, s.now)
	r.Events.Record(s.now, reference(updated), transitions(&s.cache.Status, &updated.Status)...)
	return 0, nil
}

func existing(s *snapshot, name string) *v1alpha1.MemberCache {
	for i := range s.caches {
		if s.caches[i].Name == name {
			return &s.caches[i]
		}
	}
	return nil
}

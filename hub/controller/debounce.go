package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	// reportDebounce delays the reconcile after the report of a member: members that
	// change together cost one write of the CacheCluster, not one each.
	reportDebounce = 20 * time.Millisecond
	// progressDebounce delays the reconcile after a report that carries progress only. The
	// status throttle would postpone its write in any case.
	progressDebounce = 500 * time.Millisecond
)

// memberCacheHandler enqueues the CacheCluster that a MemberCache names in
// spec.cacheCluster. It does not use the owner: when a MemberCache of another owner
// that blocked the name is deleted, the CacheCluster must be reconciled as well.
func memberCacheHandler() handler.EventHandler {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, name := range cacheClusterOf(object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}})
		}
		return requests
	})
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.IsInInitialList {
				enqueue.Create(ctx, e, q)
				return
			}
			// Most are creations of the controller itself, which come in groups.
			enqueue.Create(ctx, e, delayedQueue{q, reportDebounce})
		},
		DeleteFunc:  enqueue.Delete,
		GenericFunc: enqueue.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue.Update(ctx, e, delayedQueue{q, updateDebounce(e.ObjectOld, e.ObjectNew)})
		},
	}
}

// updateDebounce returns how long the reconcile after an update of a MemberCache waits.
func updateDebounce(old, next client.Object) time.Duration {
	before, ok := old.(*v1alpha1.MemberCache)
	after, ok2 := next.(*v1alpha1.MemberCache)
	if ok && ok2 && reportsProgressOnly(before, after) {
		return progressDebounce
	}
	return reportDebounce
}

// reportsProgressOnly reports whether a member stays Progressing without an error. Nothing
// else changed in its MemberCache that the status shows at once.
func reportsProgressOnly(old, next *v1alpha1.MemberCache) bool {
	progresses := func(mc *v1alpha1.MemberCache) bool {
		return mc.DeletionTimestamp == nil && mc.Status.State == v1alpha1.MemberProgressing && mc.Status.Class == "" &&
			mc.Status.ObservedGeneration == mc.Generation
	}
	return progresses(old) && progresses(next) && old.Generation == next.Generation &&
		equality.Semantic.DeepEqual(old.Labels, next.Labels) && equality.Semantic.DeepEqual(old.Finalizers, next.Finalizers) &&
		equality.Semantic.DeepEqual(old.OwnerReferences, next.OwnerReferences) &&
		equality.Semantic.DeepEqual(old.Status.LastDrift, next.Status.LastDrift) &&
		equality.Semantic.DeepEqual(old.Status.OpenDrifts, next.Status.OpenDrifts)
}

// delayedQueue is a queue whose Add waits. An item that already waits keeps its time.
type delayedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	delay time.Duration
}

// Add enqueues a request after the delay.
func (q delayedQueue) Add(r reconcile.Request) { q.AddAfter(r, q.delay) }

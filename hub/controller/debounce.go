package controller

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reportDebounce delays the reconcile after the report of a member: members that
// change together cost one write of the CacheCluster, not one each.
const reportDebounce = 20 * time.Millisecond

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
		CreateFunc:  enqueue.Create,
		DeleteFunc:  enqueue.Delete,
		GenericFunc: enqueue.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue.Update(ctx, e, delayedQueue{q, reportDebounce})
		},
	}
}

// delayedQueue is a queue whose Add waits. An item that already waits keeps its time.
type delayedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	delay time.Duration
}

// Add enqueues a request after the delay.
func (q delayedQueue) Add(r reconcile.Request) { q.AddAfter(r, q.delay) }

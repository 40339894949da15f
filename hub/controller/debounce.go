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

// gathering is how long a member's report waits for those of the others: members
// that change together are one write of the CacheCluster, not one each.
const gathering = 20 * time.Millisecond

// gathered asks for the CacheCluster of a MemberCache again: at once when one came
// or went, and a moment later when one reports. It goes by the field that names
// the CacheCluster, not by the owner: one of somebody else in our place must be
// noticed when it goes.
func gathered() handler.EventHandler {
	named := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, name := range cacheOf(object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}})
		}
		return requests
	})
	return handler.Funcs{
		CreateFunc:  named.Create,
		DeleteFunc:  named.Delete,
		GenericFunc: named.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			named.Update(ctx, e, delayed{q})
		},
	}
}

// delayed is a queue that adds a moment later. An item that is waiting already
// keeps its time.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (d delayed) Add(r reconcile.Request) { d.AddAfter(r, gathering) }

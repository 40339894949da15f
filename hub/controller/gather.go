package controller

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// gathering is how long a member's report waits for those of the others: members
// that change together are one write of the CacheCluster, not one each.
const gathering = 20 * time.Millisecond

// gathered asks for the owner of a MemberCache again: at once when one came or
// went, and a moment later when one reports.
func gathered(mgr manager.Manager) handler.EventHandler {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.CacheCluster{}, handler.OnlyControllerOwner())
	return handler.Funcs{
		CreateFunc:  owner.Create,
		DeleteFunc:  owner.Delete,
		GenericFunc: owner.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			owner.Update(ctx, e, delayed{q})
		},
	}
}

// delayed is a queue that adds a moment later. An item that is waiting already
// keeps its time.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (d delayed) Add(r reconcile.Request) { d.AddAfter(r, gathering) }

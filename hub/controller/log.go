package controller

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// logWrite logs one successful write: what was done to which object, why, and how long the
// API server took. A write that failed is logged by controller-runtime with the error
// that Reconcile returns.
func (r *Reconciler) logWrite(ctx context.Context, level int, action string, object client.Object, cause string, started time.Time) {
	kind, member := "CacheCluster", ""
	if mc, ok := object.(*v1alpha1.MemberCache); ok {
		kind, member = "MemberCache", mc.Spec.Cluster
	}
	values := []any{"action", action, "kind", kind, "object", klog.KObj(object)}
	if member != "" {
		values = append(values, "member", member)
	}
	values = append(values, "cause", cause, "duration", r.clock.Now().Sub(started))
	ctrl.LoggerFrom(ctx).V(level).Info("Wrote object", values...)
}

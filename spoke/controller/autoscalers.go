package controller

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// autoscalerRanges returns the ranges of the autoscalers of a MemberCache's StatefulSet.
// Without an informer there are none: the cache would not answer.
func autoscalerRanges(ctx context.Context, e *memberqueue.Engagement, mc *v1alpha1.MemberCache) ([]drift.Range, error) {
	if !e.Autoscalers {
		return nil, nil
	}
	var all autoscalingv2.HorizontalPodAutoscalerList
	if err := e.Cluster.GetCache().List(ctx, &all, client.InNamespace(mc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var found []drift.Range
	for i := range all.Items {
		if hpa := &all.Items[i]; memberqueue.ScaledStatefulSet(hpa) == mc.Spec.CacheCluster {
			found = append(found, drift.Range{Min: ptr.Deref(hpa.Spec.MinReplicas, 1), Max: hpa.Spec.MaxReplicas})
		}
	}
	return found, nil
}

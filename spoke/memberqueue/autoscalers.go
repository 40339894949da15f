package memberqueue

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// autoscalerDeadline bounds the wait for a member's HorizontalPodAutoscalers.
const autoscalerDeadline = 10 * time.Second

// stripAutoscaler keeps the target and the range of a HorizontalPodAutoscaler. All of a
// member are watched: they belong to others and have no label of a cache.
func stripAutoscaler(object any) (any, error) {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return object, nil
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: hpa.Name, Namespace: hpa.Namespace, UID: hpa.UID, ResourceVersion: hpa.ResourceVersion},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: hpa.Spec.ScaleTargetRef, MinReplicas: hpa.Spec.MinReplicas, MaxReplicas: hpa.Spec.MaxReplicas},
	}, nil
}

// watchAutoscalers fills the cache with a member's HorizontalPodAutoscalers, and reports
// whether it may. An account of an earlier join lacks the right, and an old API server
// lacks the kind; then the hub owns replicas. It returns before the first reconcile: an
// autoscaler that is not in the cache yet must not count as absent.
func watchAutoscalers(ctx context.Context, cl cluster.Cluster) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, autoscalerDeadline)
	defer cancel()
	err := cl.GetAPIReader().List(ctx, &autoscalingv2.HorizontalPodAutoscalerList{}, client.Limit(1))
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("autoscalers are ignored", "reason", err.Error())
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	if _, err := cl.GetCache().GetInformer(ctx, &autoscalingv2.HorizontalPodAutoscaler{}); err != nil {
		return false, fmt.Errorf("watch HorizontalPodAutoscalers: %w", err)
	}
	return true, nil
}

// ScaledStatefulSet returns the name of the StatefulSet that an autoscaler scales, empty if
// it scales something else.
func ScaledStatefulSet(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	target := hpa.Spec.ScaleTargetRef
	if group, _, _ := strings.Cut(target.APIVersion, "/"); target.Kind != "StatefulSet" || group != "apps" {
		return ""
	}
	return target.Name
}

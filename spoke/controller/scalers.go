package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// scalerDeadline bounds the wait for a member's HorizontalPodAutoscalers.
const scalerDeadline = 10 * time.Second

// stripScaler keeps of a HorizontalPodAutoscaler what it may scale and how far. All of
// a member are watched: they are other people's and carry no label of ours.
func stripScaler(object any) (any, error) {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return object, nil
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: hpa.Name, Namespace: hpa.Namespace, UID: hpa.UID, ResourceVersion: hpa.ResourceVersion},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: hpa.Spec.ScaleTargetRef, MinReplicas: hpa.Spec.MinReplicas, MaxReplicas: hpa.Spec.MaxReplicas},
	}, nil
}

// watchScalers fills the cache with a member's HorizontalPodAutoscalers, and says
// whether it may. An account of an earlier join may not, nor has an old API server the
// kind; then nothing is known of autoscalers, and replicas are ours. It returns before
// anything is reconciled: an autoscaler that is not in the cache yet must not count as
// none.
func watchScalers(ctx context.Context, cl cluster.Cluster) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, scalerDeadline)
	defer cancel()
	err := cl.GetAPIReader().List(ctx, &autoscalingv2.HorizontalPodAutoscalerList{}, client.Limit(1))
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("autoscalers are not looked at", "reason", err.Error())
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

// scalers are the ranges of those that scale the StatefulSet of a MemberCache.
func (e *engagement) scalersOf(ctx context.Context, mc *v1alpha1.MemberCache) ([]drift.Range, error) {
	if !e.scalers {
		return nil, nil
	}
	var all autoscalingv2.HorizontalPodAutoscalerList
	if err := e.cluster.GetCache().List(ctx, &all, client.InNamespace(mc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var found []drift.Range
	for i := range all.Items {
		if hpa := &all.Items[i]; scales(hpa) == mc.Spec.CacheCluster {
			found = append(found, drift.Range{Min: ptr.Deref(hpa.Spec.MinReplicas, 1), Max: hpa.Spec.MaxReplicas})
		}
	}
	return found, nil
}

// scales is the name of the StatefulSet that an autoscaler is for, empty if it is for
// something else.
func scales(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	target := hpa.Spec.ScaleTargetRef
	if group, _, _ := strings.Cut(target.APIVersion, "/"); target.Kind != "StatefulSet" || group != "apps" {
		return ""
	}
	return target.Name
}

// scalerHandler enqueues the cache whose replicas may be somebody else's now, or ours
// again. An autoscaler's status changes all the time and says nothing.
func (m *member) scalerHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { m.onScaler(object) },
		UpdateFunc: func(old, object any) {
			before, ok1 := old.(*autoscalingv2.HorizontalPodAutoscaler)
			after, ok2 := object.(*autoscalingv2.HorizontalPodAutoscaler)
			if ok1 && ok2 && before.Spec.ScaleTargetRef == after.Spec.ScaleTargetRef && before.Spec.MaxReplicas == after.Spec.MaxReplicas &&
				ptr.Equal(before.Spec.MinReplicas, after.Spec.MinReplicas) {
				return
			}
			m.onScaler(old)
			m.onScaler(object)
		},
		DeleteFunc: func(object any) { m.onScaler(lastKnown(object)) },
	}
}

func (m *member) onScaler(object any) {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || scales(hpa) == "" {
		return
	}
	key := types.NamespacedName{Namespace: hpa.Namespace, Name: scales(hpa) + "." + m.name}
	if m.knows(key) {
		m.enqueue(key)
	}
}

func (m *member) knows(key types.NamespacedName) bool {
	m.connection.Lock()
	defer m.connection.Unlock()
	_, known := m.caches[key]
	return known
}

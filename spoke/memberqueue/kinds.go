package memberqueue

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Scheme returns a scheme with every kind that is read or written in a member.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// Kinds returns the kinds that must be in a member's cache before it counts as connected:
// the children, and the pods that show why a child is not ready.
func Kinds() []client.Object { return append(ChildKinds(), &corev1.Pod{}) }

// ChildKinds returns the kinds of children.
func ChildKinds() []client.Object {
	return []client.Object{&corev1.Service{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}}
}

// CacheField is the index by which a member's cache finds the children and pods of a
// MemberCache.
const CacheField = "metadata.labels." + v1alpha1.LabelCacheCluster

// AddIndexes adds CacheField to the caches of all members.
func AddIndexes(indexer client.FieldIndexer) error {
	for _, object := range Kinds() {
		if err := indexer.IndexField(context.Background(), object, CacheField, CacheOf); err != nil {
			return fmt.Errorf("index %T: %w", object, err)
		}
	}
	return nil
}

// CacheOf returns the value of CacheField.
func CacheOf(object client.Object) []string {
	if cache, labelled := object.GetLabels()[v1alpha1.LabelCacheCluster]; labelled {
		return []string{cache}
	}
	return nil
}

// CacheOptions restricts a member's cache to objects with the label of a cache; the memory
// of the hub then grows with the caches, not with the members. Autoscalers have no such
// label, and only a few of their fields are kept.
func CacheOptions() cache.Options {
	labelled, err := labels.NewRequirement(v1alpha1.LabelCacheCluster, selection.Exists, nil)
	utilruntime.Must(err)
	selector := labels.NewSelector().Add(*labelled)
	return cache.Options{
		DefaultLabelSelector: selector,
		DefaultTransform:     shareFieldSets,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                            {Label: selector, Transform: stripPod},
			&autoscalingv2.HorizontalPodAutoscaler{}: {Label: labels.Everything(), Transform: stripAutoscaler},
		},
	}
}

// stripPod keeps the fields of a pod that spoke/observe reads.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion, Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
			InitContainerStatuses: pod.Status.InitContainerStatuses, ContainerStatuses: pod.Status.ContainerStatuses},
	}, nil
}

var memberScheme = Scheme()

package controller

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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// MemberScheme knows every kind that is read or written in a member.
func MemberScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		// These register static types and fail only for two types of one kind.
		_ = add(scheme)
	}
	return scheme
}

// MemberKinds are the kinds that must be in a member's cache before it counts as
// connected: the children, and the pods that tell why a child is not ready.
func MemberKinds() []client.Object { return append(ChildKinds(), &corev1.Pod{}) }

// ChildKinds are the kinds of children.
func ChildKinds() []client.Object {
	return []client.Object{&corev1.Service{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}}
}

// carriedField is the index by which a member's cache finds the children and pods of a
// MemberCache.
const carriedField = "metadata.labels." + v1alpha1.LabelCacheCluster

// IndexMembers adds the indexes that a Controller needs to the caches of all members.
func IndexMembers(indexer client.FieldIndexer) error {
	for _, object := range MemberKinds() {
		if err := indexer.IndexField(context.Background(), object, carriedField, carriedBy); err != nil {
			return fmt.Errorf("index %T: %w", object, err)
		}
	}
	return nil
}

func carriedBy(object client.Object) []string {
	if cache, carried := object.GetLabels()[v1alpha1.LabelCacheCluster]; carried {
		return []string{cache}
	}
	return nil
}

// MemberCacheOptions restrict a member's cache to what carries our label; the
// hub's memory then grows with the caches, not with the members. Autoscalers carry
// none, and only a few fields of them are kept.
func MemberCacheOptions() cache.Options {
	carried, err := labels.NewRequirement(v1alpha1.LabelCacheCluster, selection.Exists, nil)
	selector := labels.Nothing()
	if err == nil {
		selector = labels.NewSelector().Add(*carried)
	}
	return cache.Options{
		DefaultLabelSelector: selector,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                            {Label: selector, Transform: stripPod},
			&autoscalingv2.HorizontalPodAutoscaler{}: {Label: labels.Everything(), Transform: stripScaler},
		},
	}
}

// stripPod keeps of a pod what observe reads.
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

var memberScheme = MemberScheme()

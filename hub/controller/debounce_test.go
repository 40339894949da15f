package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestMemberCacheHandler_EnqueuesTheCacheClusterWhenAForeignMemberCacheIsDeleted(t *testing.T) {
	mc := desiredMemberCache(sessions("a"), "a")
	mc.OwnerReferences = nil
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()

	memberCacheHandler().Delete(t.Context(), event.DeleteEvent{Object: &mc}, queue)

	if queue.Len() != 1 {
		t.Fatalf("%d requests, want 1: no other event reports that the name is free", queue.Len())
	}
	if request, _ := queue.Get(); request.NamespacedName != (types.NamespacedName{Namespace: "shop", Name: "sessions"}) {
		t.Errorf("request for %s", request)
	}
}

func TestUpdateDebounce_DelaysProgressLongerThanEveryOtherReport(t *testing.T) {
	starting := desiredMemberCache(sessions("a"), "a")
	starting.Generation = 1
	starting.Status = v1alpha1.MemberCacheStatus{State: v1alpha1.MemberProgressing, ObservedGeneration: 1, Replicas: 2}
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.MemberCache)
		want   time.Duration
	}{
		{"one more pod is ready", func(mc *v1alpha1.MemberCache) { mc.Status.ReadyReplicas = 1 }, progressDebounce},
		{"the member is ready", func(mc *v1alpha1.MemberCache) { mc.Status.State = v1alpha1.MemberReady }, reportDebounce},
		{"an error", func(mc *v1alpha1.MemberCache) { mc.Status.Class = v1alpha1.ClassTransient }, reportDebounce},
		{"a drift", func(mc *v1alpha1.MemberCache) { mc.Status.LastDrift = &v1alpha1.Drift{Count: 1} }, reportDebounce},
		{"a new generation", func(mc *v1alpha1.MemberCache) { mc.Generation = 2 }, reportDebounce},
		{"a removed finalizer", func(mc *v1alpha1.MemberCache) { mc.Finalizers = nil }, reportDebounce},
		{"a removed label", func(mc *v1alpha1.MemberCache) { mc.Labels = nil }, reportDebounce},
		{"a removed owner", func(mc *v1alpha1.MemberCache) { mc.OwnerReferences = nil }, reportDebounce},
		{"a deletion", func(mc *v1alpha1.MemberCache) { mc.DeletionTimestamp = &metav1.Time{Time: noon} }, reportDebounce},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := starting.DeepCopy()
			c.change(next)
			if got := updateDebounce(&starting, next); got != c.want {
				t.Errorf("delay %s, want %s", got, c.want)
			}
		})
	}
}

package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

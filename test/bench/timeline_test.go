package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestTimeline_KeepsTheTimeOfTheLatestTransition(t *testing.T) {
	tl := newTimeline()
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	tl.record("a", "x", second(1), map[fact]bool{present: true, ready: false})
	tl.record("b", "x", second(2), map[fact]bool{present: true, ready: true})
	tl.record("a", "x", second(3), map[fact]bool{present: true, ready: true})
	tl.record("a", "x", second(4), map[fact]bool{present: true, ready: false})
	tl.record("a", "x", second(5), map[fact]bool{present: true, ready: true})
	for _, c := range []struct {
		fact fact
		want int
	}{{present, 2}, {ready, 5}} {
		got, err := tl.await(t.Context(), milestone{"a", "x", c.fact}, milestone{"b", "x", c.fact})
		if err != nil || !got.Equal(second(c.want)) {
			t.Errorf("%s at %v (%v), want second %d", c.fact, got.Unix(), err, c.want)
		}
	}
	if got := tl.lastEvent("a", "b"); !got.Equal(second(5)) {
		t.Errorf("last event at %v", got.Unix())
	}
}

func TestTimeline_NamesTheMissingMilestone(t *testing.T) {
	tl := newTimeline()
	for _, object := range []string{"x", "x.member-1", "xy"} {
		tl.record("a", object, time.Now(), map[fact]bool{present: true})
	}
	tl.forget("x")
	if _, err := tl.await(t.Context(), milestone{"a", "xy", present}); err != nil {
		t.Errorf("forget removed another cache: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, object := range []string{"x", "x.member-1"} {
		want := "waiting for " + object + " in a to be present: context canceled"
		if _, err := tl.await(ctx, milestone{"a", object, present}); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFactsOf_ReadsStatusOfTheCurrentGeneration(t *testing.T) {
	set := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2))},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2}}
		change(s)
		return s
	}
	conditions := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, ObservedGeneration: generation}}
	}
	cache := func(status metav1.ConditionStatus, generation int64) *v1alpha1.CacheCluster {
		return &v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: v1alpha1.CacheClusterStatus{Conditions: conditions(status, generation)}}
	}
	memberCache := func(status metav1.ConditionStatus, generation int64) *v1alpha1.MemberCache {
		return &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: v1alpha1.MemberCacheStatus{Conditions: conditions(status, generation)}}
	}
	for _, c := range []struct {
		name      string
		object    client.Object
		isDeleted bool
		fact      fact
		want      bool
	}{
		{"a settled StatefulSet", set(func(*appsv1.StatefulSet) {}), false, ready, true},
		{"a StatefulSet with a surplus pod", set(func(s *appsv1.StatefulSet) { s.Status.Replicas = 3 }), false, ready, false},
		{"a StatefulSet whose generation is not observed", set(func(s *appsv1.StatefulSet) { s.Generation = 3 }), false, ready, false},
		{"a deleted StatefulSet", set(func(*appsv1.StatefulSet) {}), true, present, false},
		{"a ready CacheCluster", cache(metav1.ConditionTrue, 2), false, ready, true},
		{"a CacheCluster whose condition is about an older spec", cache(metav1.ConditionTrue, 1), false, ready, false},
		{"a CacheCluster that is Ready=Unknown", cache(metav1.ConditionUnknown, 2), false, unknown, true},
		{"a deleted CacheCluster", cache(metav1.ConditionTrue, 2), true, deleted, true},
		{"a ready MemberCache", memberCache(metav1.ConditionTrue, 2), false, ready, true},
		{"a MemberCache that is not ready", memberCache(metav1.ConditionFalse, 2), false, ready, false},
		{"a MemberCache whose condition is about an older spec", memberCache(metav1.ConditionTrue, 1), false, ready, false},
		{"a deleted MemberCache", memberCache(metav1.ConditionTrue, 2), true, ready, false},
	} {
		if got := factsOf(c.object, c.isDeleted)[c.fact]; got != c.want {
			t.Errorf("%s: %s is %t", c.name, c.fact, got)
		}
	}
}

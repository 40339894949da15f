package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestAMarkKeepsTheTimeAtWhichItCameTrueLast(t *testing.T) {
	m := newMarks()
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	m.note("a", "x", at(1), map[fact]bool{present: true, ready: false})
	m.note("b", "x", at(2), map[fact]bool{present: true, ready: true})
	m.note("a", "x", at(3), map[fact]bool{present: true, ready: true})
	m.note("a", "x", at(4), map[fact]bool{present: true, ready: false})
	m.note("a", "x", at(5), map[fact]bool{present: true, ready: true})
	for _, c := range []struct {
		what fact
		want int
	}{{present, 2}, {ready, 5}} {
		got, err := m.await(t.Context(), mark{"a", "x", c.what}, mark{"b", "x", c.what})
		if err != nil || !got.Equal(at(c.want)) {
			t.Errorf("%s at %v (%v), want second %d", c.what, got.Unix(), err, c.want)
		}
	}
	if got := m.lastEvent("a", "b"); !got.Equal(at(5)) {
		t.Errorf("last event at %v", got.Unix())
	}
}

func TestAwaitNamesWhatIsMissing(t *testing.T) {
	m := newMarks()
	m.note("a", "x", time.Now(), map[fact]bool{present: true})
	m.forget("x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const want = "waiting for x in a to be present: context canceled"
	if _, err := m.await(ctx, mark{"a", "x", present}); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestWhatAnEventTells(t *testing.T) {
	set := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2))},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2}}
		change(s)
		return s
	}
	cache := func(status metav1.ConditionStatus, generation int64) *v1alpha1.CacheCluster {
		return &v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.CacheClusterStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, ObservedGeneration: generation}}}}
	}
	for _, c := range []struct {
		name string
		got  map[fact]bool
		fact fact
		want bool
	}{
		{"a StatefulSet at rest", facts(set(func(*appsv1.StatefulSet) {}), false), ready, true},
		{"one with a pod too many", facts(set(func(s *appsv1.StatefulSet) { s.Status.Replicas = 3 }), false), ready, false},
		{"one whose change was not seen yet", facts(set(func(s *appsv1.StatefulSet) { s.Generation = 3 }), false), ready, false},
		{"one that was deleted", facts(set(func(*appsv1.StatefulSet) {}), true), present, false},
		{"a ready CacheCluster", facts(cache(metav1.ConditionTrue, 2), false), ready, true},
		{"one whose status is about an older spec", facts(cache(metav1.ConditionTrue, 1), false), ready, false},
		{"one of which nothing is known", facts(cache(metav1.ConditionUnknown, 2), false), unknown, true},
		{"one that is gone", facts(cache(metav1.ConditionTrue, 2), true), gone, true},
	} {
		if c.got[c.fact] != c.want {
			t.Errorf("%s: %s is %t", c.name, c.fact, c.got[c.fact])
		}
	}
}

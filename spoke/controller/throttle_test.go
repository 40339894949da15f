package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestDeferFirstReport_OnlyWhilePodsStart(t *testing.T) {
	starting := is(v1alpha1.MemberProgressing, "", v1alpha1.ReasonPodsStarting)
	ready := is(v1alpha1.MemberReady, "", v1alpha1.ReasonPodsReady)
	failing := is(v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)
	repaired := starting
	repaired.LastDrift = &v1alpha1.Drift{Count: 1}
	known := starting
	known.ObservedGeneration = 3
	for _, c := range []struct {
		name      string
		old, next v1alpha1.MemberCacheStatus
		seen      time.Duration
		started   int
		want      time.Duration
	}{
		{"the pods of a new cache start", v1alpha1.MemberCacheStatus{}, starting, 200 * time.Millisecond, 1, 1800 * time.Millisecond},
		{"the pods of a new generation start", ready, starting, 0, 1, 2 * time.Second},
		{"the delay has passed", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 1, 0},
		{"one of 50 that start", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 50, 4900 * time.Millisecond},
		{"one of 1000 that start", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 1000, 8 * time.Second},
		{"nothing started lately", v1alpha1.MemberCacheStatus{}, starting, 0, 0, 2 * time.Second},
		{"all is ready", v1alpha1.MemberCacheStatus{}, ready, 0, 50, 0},
		{"something fails", v1alpha1.MemberCacheStatus{}, failing, 0, 50, 0},
		{"drift was corrected", v1alpha1.MemberCacheStatus{}, repaired, 0, 50, 0},
		{"the generation was reported before", known, starting, 0, 50, 0},
		{"the clock was set back", v1alpha1.MemberCacheStatus{}, starting, -time.Hour, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			mc := wasReady()
			mc.Status = c.old
			if got := deferFirstReport(&snapshot{now: noon, cache: mc}, &c.next, noon.Add(-c.seen), c.started); got != c.want {
				t.Errorf("deferred for %s, want %s", got, c.want)
			}
		})
	}
}

func TestThrottleCounts_DefersReportOfCounts(t *testing.T) {
	status := func(ready int32, state v1alpha1.MemberState, at time.Duration) *v1alpha1.MemberCacheStatus {
		when := metav1.NewTime(noon.Add(at))
		return &v1alpha1.MemberCacheStatus{State: state, ReadyReplicas: ready, ObservedAt: &when}
	}
	for _, c := range []struct {
		name      string
		old, next *v1alpha1.MemberCacheStatus
		want      time.Duration
	}{
		{"a first report", &v1alpha1.MemberCacheStatus{}, status(1, v1alpha1.MemberProgressing, 0), 0},
		{"one more pod, right after", status(1, v1alpha1.MemberProgressing, -300*time.Millisecond), status(2, v1alpha1.MemberProgressing, 0), countsInterval - 300*time.Millisecond},
		{"one more pod, later", status(1, v1alpha1.MemberProgressing, -time.Minute), status(2, v1alpha1.MemberProgressing, 0), 0},
		{"another state, right after", status(1, v1alpha1.MemberProgressing, -300*time.Millisecond), status(2, v1alpha1.MemberReady, 0), 0},
		{"the clock was set back", status(1, v1alpha1.MemberProgressing, 10*time.Minute), status(2, v1alpha1.MemberProgressing, 0), 0},
	} {
		if got := throttleCounts(c.old, c.next, noon); got != c.want {
			t.Errorf("%s: wait %s, want %s", c.name, got, c.want)
		}
	}
}

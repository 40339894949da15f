package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

func TestSettle_DoesNotReportRollOutAfterCorrection(t *testing.T) {
	rolling := &observe.Observation{State: v1alpha1.MemberProgressing, Replicas: 3, ReadyReplicas: 2, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonRollingOut, Message: "scaling down"}}
	short := &observe.Observation{State: v1alpha1.MemberProgressing, Replicas: 2, ReadyReplicas: 1, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonRollingOut}}
	settled := wasReady()
	settled.Generation = settled.Status.ObservedGeneration
	starting := settled.DeepCopy()
	starting.Status.State = v1alpha1.MemberProgressing
	type reconcile struct {
		after time.Duration
		o     *observe.Observation
		state v1alpha1.MemberState
		later time.Duration
	}
	for _, c := range []struct {
		name       string
		cache      *v1alpha1.MemberCache
		reconciles []reconcile
	}{
		{"the StatefulSet settles soon", settled, []reconcile{{0, rolling, v1alpha1.MemberReady, settleTime}, {300 * time.Millisecond, rolling, v1alpha1.MemberReady, settleTime - 300*time.Millisecond},
			{400 * time.Millisecond, readyIs, v1alpha1.MemberReady, 0}, {5 * time.Second, rolling, v1alpha1.MemberReady, settleTime}}},
		{"the roll-out continues", settled, []reconcile{{0, rolling, v1alpha1.MemberReady, settleTime}, {settleTime, rolling, v1alpha1.MemberProgressing, 0}, {2 * settleTime, rolling, v1alpha1.MemberProgressing, 0}}},
		{"a desired pod is not ready", settled, []reconcile{{0, short, v1alpha1.MemberProgressing, 0}}},
		{"the spec changed", wasReady(), []reconcile{{0, rolling, v1alpha1.MemberProgressing, 0}}},
		{"the cache was not ready", starting, []reconcile{{0, rolling, v1alpha1.MemberProgressing, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := &cacheState{}
			for i, l := range c.reconciles {
				r := result{observation: l.o}
				r.settle(&snapshot{now: noon.Add(l.after), cache: c.cache, state: state})
				o, later := r.observation, r.requeue
				if o.State != l.state || later != l.later {
					t.Errorf("reconcile %d: %s for %s, want %s for %s", i, o.State, later, l.state, l.later)
				}
				if diff := cmp.Diff(c.cache.Status.Replicas, o.Replicas); later > 0 && diff != "" {
					t.Errorf("reconcile %d: the counts change (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestSettle_ReportsRollOutAfterCorrectionOfOldDrift(t *testing.T) {
	rolling := &observe.Observation{State: v1alpha1.MemberProgressing, Replicas: 3, ReadyReplicas: 2, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonRollingOut}}
	settled := wasReady()
	settled.Generation = settled.Status.ObservedGeneration
	for age, want := range map[time.Duration]v1alpha1.MemberState{time.Second: v1alpha1.MemberReady, 9 * time.Second: v1alpha1.MemberProgressing} {
		repaired := scaled("sessions")
		entries := repaired.Found.GetManagedFields()
		entries[0].Time = &metav1.Time{Time: noon.Add(-age)}
		repaired.Found.SetManagedFields(entries)
		change := apply.Change{Key: repaired.Key, Action: apply.Correct, Drift: drift.Finding{Fields: repaired.Fields}, Intent: repaired.Intent, Found: repaired.Found}
		r := result{observation: rolling, report: apply.Report{Changes: []apply.Change{change}}}
		if r.settle(&snapshot{now: noon, cache: settled, state: &cacheState{}}); r.observation.State != want {
			t.Errorf("after %s: %s, want %s", age, r.observation.State, want)
		}
	}
}

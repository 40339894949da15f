package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func is(state v1alpha1.MemberState, class v1alpha1.ErrorClass, reason string) v1alpha1.MemberCacheStatus {
	return v1alpha1.MemberCacheStatus{State: state, Outcome: v1alpha1.Outcome{Class: class, Reason: reason, Message: "message", Hint: "hint"}}
}

func TestEventsAreForTransitionsThatSomebodyShouldKnow(t *testing.T) {
	ready := is(v1alpha1.MemberReady, "", v1alpha1.ReasonPodsReady)
	starting := is(v1alpha1.MemberProgressing, "", v1alpha1.ReasonPodsStarting)
	blocked := is(v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden)
	quota := is(v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonQuotaExceeded)
	failing := is(v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)
	away := is(v1alpha1.MemberUnreachable, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)
	again := blocked
	again.Attempt, again.Message = 7, "another message"
	drifted := ready
	drifted.OpenDrifts = []v1alpha1.DriftFinding{{Object: "Service/a", Fields: []string{"spec.ports"}, Manager: "kubectl-edit"}}
	foreign := ready
	foreign.OpenDrifts = append(slices.Clone(drifted.OpenDrifts), v1alpha1.DriftFinding{Object: "StatefulSet/a", Fields: []string{"x"}, Foreign: true})
	fight := is(v1alpha1.MemberBlocked, v1alpha1.ClassConflict, v1alpha1.ReasonDriftFight)
	fight.OpenDrifts = drifted.OpenDrifts
	for _, c := range []struct {
		name      string
		old, next v1alpha1.MemberCacheStatus
		want      []string
	}{
		{"what goes well is no event", v1alpha1.MemberCacheStatus{}, starting, nil},
		{"what went well is none either", starting, ready, nil},
		{"a roll-out is none", ready, starting, nil},
		{"new trouble", ready, blocked, []string{"Warning Forbidden message: hint"}},
		{"the same trouble again", blocked, again, nil},
		{"other trouble", blocked, quota, []string{"Warning QuotaExceeded message: hint"}},
		{"an error that lasts", starting, failing, []string{"Warning MemberError message: hint"}},
		{"a member that is lost", ready, away, []string{"Warning MemberUnreachable message: hint"}},
		{"trouble that ended", blocked, ready, []string{"Normal Recovered ready again; was Blocked (Forbidden)"}},
		{"trouble of which only the cause ended", blocked, starting, nil},
		{"drift that is reported", ready, drifted, []string{"Warning DriftReported Service/a: spec.ports changed by kubectl-edit"}},
		{"more drift", drifted, foreign, []string{"Warning ForeignFields StatefulSet/a: x added by unknown"}},
		{"a recreation, said once", ready, is(v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonRecreating), []string{"Normal Recreating message"}},
		{"drift that is gone", foreign, ready, nil},
		{"a fight is said once", ready, fight, []string{"Warning DriftFight message: hint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(&c.old, &c.next) {
				kind := "Normal "
				if e.Warning {
					kind = "Warning "
				}
				got = append(got, kind+e.Reason+" "+e.Note)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFirstReportWaitsOnlyWhileItSaysNothingNew(t *testing.T) {
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
		begun     int
		want      time.Duration
	}{
		{"pods of a new cache start", v1alpha1.MemberCacheStatus{}, starting, 200 * time.Millisecond, 1, 1800 * time.Millisecond},
		{"pods of a new generation start", ready, starting, 0, 1, 2 * time.Second},
		{"it has waited", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 1, 0},
		{"it is one of fifty", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 50, 4900 * time.Millisecond},
		{"it is one of a thousand", v1alpha1.MemberCacheStatus{}, starting, 2 * time.Second, 1000, 8 * time.Second},
		{"nothing began lately", v1alpha1.MemberCacheStatus{}, starting, 0, 0, 2 * time.Second},
		{"all is ready", v1alpha1.MemberCacheStatus{}, ready, 0, 50, 0},
		{"something fails", v1alpha1.MemberCacheStatus{}, failing, 0, 50, 0},
		{"drift was put right", v1alpha1.MemberCacheStatus{}, repaired, 0, 50, 0},
		{"the generation was reported before", known, starting, 0, 50, 0},
		{"the clock was set back", v1alpha1.MemberCacheStatus{}, starting, -time.Hour, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			mc := wasReady()
			mc.Status = c.old
			if got := early(&snapshot{now: noon, cache: mc}, &c.next, noon.Add(-c.seen), c.begun); got != c.want {
				t.Errorf("it waits %s, want %s", got, c.want)
			}
		})
	}
}

func TestARefusedRepairIsOneEvent(t *testing.T) {
	old := &v1alpha1.MemberCacheStatus{State: v1alpha1.MemberReady}
	next := &v1alpha1.MemberCacheStatus{State: v1alpha1.MemberBlocked,
		Outcome:    v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonForbidden, Message: "no"},
		OpenDrifts: []v1alpha1.DriftFinding{{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}}, {Object: "StatefulSet/sessions", Foreign: true, Fields: []string{"x"}}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDriftRefused}}}
	var reasons []string
	for _, e := range transitions(old, next) {
		reasons = append(reasons, e.Reason)
	}
	if diff := cmp.Diff([]string{v1alpha1.ReasonForbidden, v1alpha1.ReasonForeignFields}, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func is(state v1alpha1.MemberState, class v1alpha1.ErrorClass, reason string) v1alpha1.MemberCacheStatus {
	return v1alpha1.MemberCacheStatus{State: state, Outcome: v1alpha1.Outcome{Class: class, Reason: reason, Message: "message", Hint: "hint"}}
}

func TestTransitions_RecordsTroubleAndItsEnd(t *testing.T) {
	ready := is(v1alpha1.MemberReady, "", v1alpha1.ReasonPodsReady)
	starting := is(v1alpha1.MemberProgressing, "", v1alpha1.ReasonPodsStarting)
	blocked := is(v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden)
	quota := is(v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonQuotaExceeded)
	failing := is(v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)
	unreachable := is(v1alpha1.MemberUnreachable, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)
	again := blocked
	again.Attempt, again.Message = 7, "another message"
	drifted := ready
	drifted.OpenDrifts = []v1alpha1.DriftFinding{{Object: "Service/a", Fields: []string{"spec.ports"}, Manager: "kubectl-edit"}}
	foreign := ready
	foreign.OpenDrifts = append(slices.Clone(drifted.OpenDrifts), v1alpha1.DriftFinding{Object: "StatefulSet/a", Fields: []string{"x"}, Foreign: true})
	wider := drifted
	wider.OpenDrifts = []v1alpha1.DriftFinding{{Object: "Service/a", Fields: []string{"spec.ports"}, OmittedFields: 2, Manager: "kubectl-edit"}}
	conflict := is(v1alpha1.MemberBlocked, v1alpha1.ClassConflict, v1alpha1.ReasonDriftFight)
	conflict.OpenDrifts = drifted.OpenDrifts
	for _, c := range []struct {
		name      string
		old, next v1alpha1.MemberCacheStatus
		want      []string
	}{
		{"a start is no event", v1alpha1.MemberCacheStatus{}, starting, nil},
		{"ready is no event", starting, ready, nil},
		{"a roll-out is no event", ready, starting, nil},
		{"new trouble", ready, blocked, []string{"Warning Forbidden message: hint"}},
		{"the same trouble again", blocked, again, nil},
		{"other trouble", blocked, quota, []string{"Warning QuotaExceeded message: hint"}},
		{"an error that lasts", starting, failing, []string{"Warning MemberError message: hint"}},
		{"a member that is lost", ready, unreachable, []string{"Warning MemberUnreachable message: hint"}},
		{"trouble that ended", blocked, ready, []string{"Normal Recovered ready again; was Blocked (Forbidden)"}},
		{"trouble whose cause ended, without ready pods", blocked, starting, nil},
		{"drift that is reported", ready, drifted, []string{"Warning DriftReported Service/a: spec.ports changed by kubectl-edit"}},
		{"more drift", drifted, foreign, []string{"Warning ForeignFields StatefulSet/a: x added by unknown"}},
		{"more omitted fields", drifted, wider, []string{"Warning DriftReported Service/a: spec.ports and 2 more changed by kubectl-edit"}},
		{"a recreation is recorded once", ready, is(v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonRecreating), []string{"Normal Recreating message"}},
		{"drift that ended", foreign, ready, nil},
		{"a conflict is recorded once", ready, conflict, []string{"Warning DriftFight message: hint"}},
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

func TestTransitions_RecordsRefusedCorrectionOnce(t *testing.T) {
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

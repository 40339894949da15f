package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// verdictOf has a Ready condition and members a, b, ... in the given states.
func verdictOf(status metav1.ConditionStatus, reason string, states ...v1alpha1.MemberState) *v1alpha1.CacheClusterStatus {
	s := &v1alpha1.CacheClusterStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "message"}}}
	for i, state := range states {
		s.Clusters = append(s.Clusters, v1alpha1.ClusterStatus{Name: string(rune('a' + i)), State: state})
	}
	return s
}

func TestOnlyProgressWaits(t *testing.T) {
	const progressing, ready = v1alpha1.MemberProgressing, v1alpha1.MemberReady
	none := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	one := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, ready, progressing)
	all := verdictOf(metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady, ready, ready)
	lost := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberUnreachable, progressing)
	failing := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	failing.Clusters[0].Class = v1alpha1.ClassTransient
	leaving := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberDeleting, progressing)
	drifted := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	drifted.Clusters[0].LastDrift = &v1alpha1.Drift{Count: 1}
	newer := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, ready, progressing)
	newer.ObservedGeneration = 2
	for _, c := range []struct {
		name  string
		next  *v1alpha1.CacheClusterStatus
		wrote time.Duration
		want  time.Duration
	}{
		{"one of two became ready", one, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"one of two removes its children", leaving, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"it has waited", one, 2 * time.Second, 0},
		{"all became ready", all, 0, 0},
		{"one was lost", lost, 0, 0},
		{"one fails", failing, 0, 0},
		{"drift was put right", drifted, 0, 0},
		{"the spec changed", newer, 0, 0},
		{"the clock was set back", one, -time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p pace
			p.note("uid", noon.Add(-c.wrote))
			if got := p.hasty("uid", none, c.next, noon); got != c.want {
				t.Errorf("it waits %s, want %s", got, c.want)
			}
			p.forget("uid")
			if got := p.hasty("uid", none, c.next, noon); got != 0 {
				t.Errorf("without a write before it waits %s", got)
			}
		})
	}
}

func TestEventsTellWhenACacheIsReadyAndWhatKeepsItFromThat(t *testing.T) {
	starting := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady)
	ready := verdictOf(metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	blocked := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonMembersBlocked)
	away := verdictOf(metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable)
	deleting := verdictOf(metav1.ConditionFalse, v1alpha1.ReasonDeleting)
	nothing := &v1alpha1.CacheClusterStatus{}
	for _, c := range []struct {
		name      string
		old, next *v1alpha1.CacheClusterStatus
		want      []string
	}{
		{"a new cache starts", nothing, starting, nil},
		{"it is ready", starting, ready, []string{"Normal AllMembersReady"}},
		{"it stays ready", ready, ready, nil},
		{"it rolls out", ready, starting, nil},
		{"a member blocks", ready, blocked, []string{"Warning MembersBlocked"}},
		{"a member is lost", ready, away, []string{"Warning MembersUnreachable"}},
		{"it comes back", away, ready, []string{"Normal AllMembersReady"}},
		{"it is deleted", ready, deleting, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(c.old, c.next) {
				kind := "Normal "
				if e.Warning {
					kind = "Warning "
				}
				got = append(got, kind+e.Reason)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

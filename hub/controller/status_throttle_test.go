package controller

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// statusOf returns a status with a Ready condition, and members a, b, ... in the given states.
func statusOf(status metav1.ConditionStatus, reason string, states ...v1alpha1.MemberState) *v1alpha1.CacheClusterStatus {
	s := &v1alpha1.CacheClusterStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "message"}}}
	for i, state := range states {
		s.Clusters = append(s.Clusters, v1alpha1.ClusterStatus{Name: string(rune('a' + i)), State: state})
	}
	return s
}

func TestStatusThrottle_DelaysProgressOnly(t *testing.T) {
	const progressing, ready = v1alpha1.MemberProgressing, v1alpha1.MemberReady
	none := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	one := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, ready, progressing)
	all := statusOf(metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady, ready, ready)
	unreachable := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberUnreachable, progressing)
	failing := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	failing.Clusters[0].Class = v1alpha1.ClassTransient
	deleting := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberDeleting, progressing)
	drifted := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, progressing, progressing)
	drifted.Clusters[0].LastDrift = &v1alpha1.Drift{Count: 1}
	newer := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, ready, progressing)
	newer.ObservedGeneration = 2
	for _, c := range []struct {
		name    string
		next    *v1alpha1.CacheClusterStatus
		written time.Duration
		want    time.Duration
	}{
		{"one of two became ready", one, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"one of two deletes its children", deleting, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"the pause is over", one, 2 * time.Second, 0},
		{"all became ready", all, 0, 0},
		{"one is unreachable", unreachable, 0, 0},
		{"one fails", failing, 0, 0},
		{"drift was corrected", drifted, 0, 0},
		{"the spec changed", newer, 0, 0},
		{"the clock was set back", one, -time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc, s := sessions("a", "b"), newStates()
			cc.Status = *none
			s.wroteStatus(cc, noon.Add(-c.written))
			if got := s.statusThrottle(cc, c.next, noon); got != c.want {
				t.Errorf("it waits %s, want %s", got, c.want)
			}
			s.forget(cc.UID)
			if got := s.statusThrottle(cc, c.next, noon); got != 0 {
				t.Errorf("without an earlier write it waits %s", got)
			}
		})
	}
}

func TestStatusThrottle_GrowsWithTheCacheClustersThatProgress(t *testing.T) {
	s := newStates()
	none := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberProgressing, v1alpha1.MemberProgressing)
	one := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, v1alpha1.MemberReady, v1alpha1.MemberProgressing)
	for i := range 50 {
		cc := sessions("a", "b")
		cc.UID, cc.Status = types.UID(fmt.Sprint(i)), *none
		s.wroteStatus(cc, noon)
	}
	cc := sessions("a", "b")
	cc.UID, cc.Status = "7", *none
	if got, want := s.statusThrottle(cc, one, noon), 6900*time.Millisecond; got != want {
		t.Errorf("one of 50 waits %s, want %s", got, want)
	}
}

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestReadyTransition_RecordsReadyAndEveryReasonThatIsNoProgress(t *testing.T) {
	starting := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady)
	ready := statusOf(metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	blocked := statusOf(metav1.ConditionFalse, v1alpha1.ReasonMembersBlocked)
	unreachable := statusOf(metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable)
	deleting := statusOf(metav1.ConditionFalse, v1alpha1.ReasonDeleting)
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
		{"a member is unreachable", ready, unreachable, []string{"Warning MembersUnreachable"}},
		{"it is reachable again", unreachable, ready, []string{"Normal AllMembersReady"}},
		{"it is deleted", ready, deleting, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range readyTransition(c.old, c.next) {
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

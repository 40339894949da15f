package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// unreachable returns a member that is being removed while it is unreachable.
func unreachable(name string) Member {
	mc := report(v1alpha1.MemberDeleting, v1alpha1.ReasonMemberUnreachable, 0)
	mc.Namespace, mc.Spec.CacheCluster, mc.Spec.Cluster = "shop", "sessions", name
	mc.DeletionTimestamp = &earlier
	mc.Status.Class, mc.Status.Message, mc.Status.Hint = v1alpha1.ClassUnreachable, "the member's API server refuses connections", "check it"
	return Member{Name: name, Cache: mc}
}

func TestSummarize_NamesTheMembersThatADeletionWaitsForAndHowToAbandonThem(t *testing.T) {
	in := input(unreachable("b"), unreachable("a"))
	in.Deleting, in.AbandonUnknown = true, []string{"c"}
	first := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	message := meta.FindStatusCondition(first.Conditions, v1alpha1.ConditionReady).Message
	want := `waiting for the children to be deleted in a (unreachable since 2026-11-30T11:00:00Z): the member's API server refuses connections; ` +
		`b (unreachable since 2026-11-30T11:00:00Z): the member's API server refuses connections; ` +
		`metadata.annotations[cache.reconcile-lab.io/abandon]: the hub has no member "c"; correct the name`
	if message != want {
		t.Errorf("message\n %s\nwant\n %s", message, want)
	}
	wantHint := "check it; to abandon the member and orphan its children: kubectl annotate cachecluster -n shop sessions --overwrite cache.reconcile-lab.io/abandon=a"
	if hint := first.Clusters[0].Hint; hint != wantHint {
		t.Errorf("hint\n %s\nwant\n %s", hint, wantHint)
	}
	in.Now = noon.Add(1000)
	again := Summarize(&first, in)
	if got := meta.FindStatusCondition(again.Conditions, v1alpha1.ConditionReady).Message; got != message {
		t.Errorf("the message depends on the time: %s", got)
	}
}

func TestSummarize_SetsAbandonedWhileTheStatusListsAbandonedMembers(t *testing.T) {
	in := input(placed("a", ready()))
	in.Abandoned = []v1alpha1.AbandonedMember{{Name: "c"}, {Name: "b", Children: []string{"Service/sessions", "StatefulSet/sessions"}}}
	status := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAbandoned)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonAbandoned ||
		c.Message != "orphaned in b: Service/sessions, StatefulSet/sessions; abandoned c, which has no known children" {
		t.Errorf("condition %+v", c)
	}
	in.Abandoned, in.AbandonUnknown = nil, []string{"x"}
	status = Summarize(&status, in)
	c = meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAbandoned)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonUnknownMembers || !strings.Contains(c.Message, `"x"`) {
		t.Errorf("condition %+v", c)
	}
	in.AbandonUnknown = nil
	if status = Summarize(&status, in); len(status.Abandoned) > 0 || meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAbandoned) != nil {
		t.Errorf("Abandoned must be absent: %+v", status)
	}
}

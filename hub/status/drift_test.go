package status

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestSummarize_SetsDriftedToTheMostSevereReasonOfTheMembers(t *testing.T) {
	drifting := func(reason string) *v1alpha1.MemberCache {
		mc := ready()
		mc.Status.OpenDrifts = []v1alpha1.DriftFinding{{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}}}
		mc.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: reason, Message: "message of " + reason}}
		return mc
	}
	for _, c := range []struct {
		name    string
		members []Member
		want    string
	}{
		{"no remaining drift", []Member{placed("a", ready())}, ""},
		{"no report yet", []Member{placed("a", nil)}, ""},
		{"one member", []Member{placed("a", ready()), placed("b", drifting(v1alpha1.ReasonForeignFields))}, "ForeignFields b: message of ForeignFields"},
		{"a conflict before reported drift before foreign fields", []Member{placed("c", drifting(v1alpha1.ReasonDriftReported)), placed("b", drifting(v1alpha1.ReasonDriftFight)), placed("a", drifting(v1alpha1.ReasonForeignFields))},
			"DriftFight a: message of ForeignFields; b: message of DriftFight; c: message of DriftReported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := Summarize(&v1alpha1.CacheClusterStatus{}, input(c.members...))
			got := ""
			if is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrifted); is != nil {
				got = is.Reason + " " + is.Message
			}
			if got != c.want {
				t.Errorf("Drifted is %q, want %q", got, c.want)
			}
			for i := range status.Clusters {
				cache := c.members[slices.IndexFunc(c.members, func(m Member) bool { return m.Name == status.Clusters[i].Name })].Cache
				if cache != nil && len(status.Clusters[i].OpenDrifts) != len(cache.Status.OpenDrifts) {
					t.Errorf("%s has the remaining drift %v", status.Clusters[i].Name, status.Clusters[i].OpenDrifts)
				}
			}
		})
	}
}

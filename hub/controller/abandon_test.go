package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestDecide_AbandonsAMemberOnlyWithConsentWhileUnreachableAndRecorded(t *testing.T) {
	earlier := metav1.NewTime(noon.Add(-1))
	abandoned := func(members ...string) []v1alpha1.AbandonedMember {
		var all []v1alpha1.AbandonedMember
		for _, name := range members {
			all = append(all, v1alpha1.AbandonedMember{Name: name, Children: []string{"Service/sessions", "StatefulSet/sessions"}, At: earlier})
		}
		return all
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	type profiles = map[string]metav1.ConditionStatus
	for _, c := range []struct {
		name, why  string
		annotation string
		// deleting are members whose MemberCache is being deleted; placed are members
		// that the placement chooses.
		deleting, placed []string
		profiles         profiles
		recorded         []v1alpha1.AbandonedMember
		abandon          []string
		status           []string
		unknownNames     []string
	}{
		{name: "no annotation", why: "the deletion waits", deleting: []string{"a"}, profiles: profiles{"a": no}},
		{name: "named and unreachable", why: "the status is written first", annotation: "a", deleting: []string{"a"}, profiles: profiles{"a": no}, status: []string{"a"}},
		{name: "named, unreachable and in the status", why: "it is abandoned", annotation: "a", deleting: []string{"a"}, profiles: profiles{"a": no}, recorded: abandoned("a"), abandon: []string{"sessions.a"}, status: []string{"a"}},
		{name: "named and reachable", why: "its children can be deleted", annotation: "a", deleting: []string{"a"}, profiles: profiles{"a": yes}},
		{name: "named, in the status, and reachable again", why: "its children can be deleted", annotation: "a", deleting: []string{"a"}, profiles: profiles{"a": yes}, recorded: abandoned("a")},
		{name: "named and not probed yet", why: "it may be reachable", annotation: "a", deleting: []string{"a"}, profiles: profiles{"a": unknown}},
		{name: "named and without a profile", why: "it cannot be reached", annotation: "a", deleting: []string{"a"}, status: []string{"a"}},
		{name: "all members", why: "only unreachable ones are abandoned", annotation: "*", deleting: []string{"a", "b"}, profiles: profiles{"a": no, "b": yes}, status: []string{"a"}},
		{name: "a list with spaces", why: "spaces are ignored", annotation: " a , ,b", deleting: []string{"a", "b"}, profiles: profiles{"a": no, "b": no}, status: []string{"a", "b"}},
		{name: "another member named", why: "the consent does not cover it", annotation: "b", deleting: []string{"a"}, profiles: profiles{"a": no, "b": no}},
		{name: "an unknown name", why: "it is reported", annotation: "aa,a", deleting: []string{"a"}, profiles: profiles{"a": no}, status: []string{"a"}, unknownNames: []string{"aa"}},
		{name: "abandoned already", why: "the orphaned children stay in the status", annotation: "a", profiles: profiles{"a": no}, recorded: abandoned("a"), status: []string{"a"}},
		{name: "abandoned already, and its profile deleted", why: "the orphaned children stay in the status, and the name is not reported as unknown", annotation: "a", recorded: abandoned("a"), status: []string{"a"}},
		{name: "the annotation removed", why: "the entry is removed", profiles: profiles{"a": no}, recorded: abandoned("a")},
		{name: "placed again", why: "the cache owns its children again", annotation: "a", placed: []string{"a"}, profiles: profiles{"a": no}, recorded: abandoned("a")},
		{name: "placed and unreachable", why: "only removed members are abandoned", annotation: "*", placed: []string{"a"}, profiles: profiles{"a": no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := sessions(c.placed...)
			cc.Status.Abandoned = c.recorded
			if c.annotation != "" {
				cc.Annotations = map[string]string{v1alpha1.AnnotationAbandon: c.annotation}
			}
			s := &snapshot{now: noon, cacheCluster: cc, reachable: c.profiles, members: fleet(c.placed...)}
			for _, name := range c.placed {
				s.memberCaches = append(s.memberCaches, desiredMemberCache(cc, name))
			}
			for _, name := range c.deleting {
				mc := desiredMemberCache(cc, name)
				mc.DeletionTimestamp = &metav1.Time{Time: noon}
				mc.Status.Inventory = []v1alpha1.InventoryEntry{{Kind: "StatefulSet", Name: "sessions"}, {Kind: "Service", Name: "sessions"}}
				s.memberCaches = append(s.memberCaches, mc)
			}
			p := decide(s)
			if diff := cmp.Diff(c.abandon, sortedNames(p.abandon)); diff != "" {
				t.Errorf("%s: abandoned (-want +got):\n%s", c.why, diff)
			}
			var status []string
			for _, entry := range p.summary.Abandoned {
				status = append(status, entry.Name)
				if diff := cmp.Diff([]string{"Service/sessions", "StatefulSet/sessions"}, entry.Children); diff != "" {
					t.Errorf("children of %s:\n%s", entry.Name, diff)
				}
				if len(c.recorded) > 0 && !entry.At.Equal(&earlier) {
					t.Errorf("the time of %s changed", entry.Name)
				}
			}
			slices.Sort(status)
			if diff := cmp.Diff(c.status, status); diff != "" {
				t.Errorf("%s: status (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.unknownNames, p.summary.AbandonUnknown); diff != "" {
				t.Errorf("%s: unknown names (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

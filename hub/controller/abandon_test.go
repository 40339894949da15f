package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestAMemberIsLetGoOnlyWithConsentWhileItIsAwayAndOnceTheStatusSaysSo(t *testing.T) {
	earlier := metav1.NewTime(noon.Add(-1))
	let := func(members ...string) []v1alpha1.AbandonedMember {
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
		// leaving are members whose MemberCache is being deleted; placed are those where
		// the cache is to run.
		leaving, placed []string
		profiles        profiles
		recorded        []v1alpha1.AbandonedMember
		abandon         []string
		status          []string
		misnamed        []string
	}{
		{name: "no annotation", why: "deletion waits", leaving: []string{"a"}, profiles: profiles{"a": no}},
		{name: "named and away", why: "the status comes first", annotation: "a", leaving: []string{"a"}, profiles: profiles{"a": no}, status: []string{"a"}},
		{name: "named, away and in the status", why: "it is let go", annotation: "a", leaving: []string{"a"}, profiles: profiles{"a": no}, recorded: let("a"), abandon: []string{"sessions.a"}, status: []string{"a"}},
		{name: "named and there", why: "its children can be removed", annotation: "a", leaving: []string{"a"}, profiles: profiles{"a": yes}},
		{name: "named, in the status, and back", why: "its children can be removed", annotation: "a", leaving: []string{"a"}, profiles: profiles{"a": yes}, recorded: let("a")},
		{name: "named and not probed yet", why: "it may well answer", annotation: "a", leaving: []string{"a"}, profiles: profiles{"a": unknown}},
		{name: "named and without a profile", why: "nobody can reach it", annotation: "a", leaving: []string{"a"}, status: []string{"a"}},
		{name: "everyone", why: "those that are away", annotation: "*", leaving: []string{"a", "b"}, profiles: profiles{"a": no, "b": yes}, status: []string{"a"}},
		{name: "a list with spaces", why: "they mean nothing", annotation: " a , ,b", leaving: []string{"a", "b"}, profiles: profiles{"a": no, "b": no}, status: []string{"a", "b"}},
		{name: "another one named", why: "it does not apply", annotation: "b", leaving: []string{"a"}, profiles: profiles{"a": no, "b": no}},
		{name: "a name that is none", why: "it is told", annotation: "aa,a", leaving: []string{"a"}, profiles: profiles{"a": no}, status: []string{"a"}, misnamed: []string{"aa"}},
		{name: "gone already", why: "what was left behind stays known", annotation: "a", profiles: profiles{"a": no}, recorded: let("a"), status: []string{"a"}},
		{name: "gone already, with its profile", why: "what was left behind stays known, and the name is no mistake", annotation: "a", recorded: let("a"), status: []string{"a"}},
		{name: "the annotation taken back", why: "it was read", profiles: profiles{"a": no}, recorded: let("a")},
		{name: "placed there again", why: "the cache looks after its children", annotation: "a", placed: []string{"a"}, profiles: profiles{"a": no}, recorded: let("a")},
		{name: "placed and away", why: "only what is being removed is let go", annotation: "*", placed: []string{"a"}, profiles: profiles{"a": no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := sessions(c.placed...)
			cc.Status.Abandoned = c.recorded
			if c.annotation != "" {
				cc.Annotations = map[string]string{v1alpha1.AnnotationAbandon: c.annotation}
			}
			s := &snapshot{now: noon, cache: cc, reachable: c.profiles, members: fleet(c.placed...)}
			for _, name := range c.placed {
				s.caches = append(s.caches, asWanted(cc, name))
			}
			for _, name := range c.leaving {
				mc := asWanted(cc, name)
				mc.DeletionTimestamp = &metav1.Time{Time: noon}
				mc.Status.Inventory = []v1alpha1.InventoryEntry{{Kind: "StatefulSet", Name: "sessions"}, {Kind: "Service", Name: "sessions"}}
				s.caches = append(s.caches, mc)
			}
			p := decide(s)
			if diff := cmp.Diff(c.abandon, planned(p.abandon)); diff != "" {
				t.Errorf("%s: let go (-want +got):\n%s", c.why, diff)
			}
			var status []string
			for _, entry := range p.verdict.Abandoned {
				status = append(status, entry.Name)
				if diff := cmp.Diff([]string{"Service/sessions", "StatefulSet/sessions"}, entry.Children); diff != "" {
					t.Errorf("children of %s:\n%s", entry.Name, diff)
				}
				if len(c.recorded) > 0 && !entry.At.Equal(&earlier) {
					t.Errorf("the time of %s moved", entry.Name)
				}
			}
			slices.Sort(status)
			if diff := cmp.Diff(c.status, status); diff != "" {
				t.Errorf("%s: status (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.misnamed, p.verdict.AbandonUnknown); diff != "" {
				t.Errorf("%s: names that are none (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

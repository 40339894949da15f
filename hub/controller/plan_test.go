package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/override"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func sessions(members ...string) *v1alpha1.CacheCluster {
	return &v1alpha1.CacheCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions", UID: "owner", Generation: 3},
		Spec: v1alpha1.CacheClusterSpec{CacheTemplate: v1alpha1.CacheTemplate{Replicas: ptr.To[int32](2)},
			Placement: v1alpha1.Placement{Clusters: members}},
	}
}

func fleet(names ...string) []placement.Member {
	var members []placement.Member
	for _, name := range names {
		members = append(members, placement.Member{Name: name, Labels: map[string]string{"name": name}})
	}
	return members
}

// desiredMemberCache returns the MemberCache of a member as the hub creates it.
func desiredMemberCache(cc *v1alpha1.CacheCluster, member string) v1alpha1.MemberCache {
	return *desired(cc, member, cc.Spec.CacheTemplate, override.Revision(&cc.Spec.CacheTemplate))
}

// sortedNames returns the names of MemberCaches, sorted.
func sortedNames(caches []*v1alpha1.MemberCache) []string {
	var names []string
	for _, mc := range caches {
		names = append(names, mc.Name)
	}
	slices.Sort(names)
	return names
}

func TestDecide_PlansTheMemberCachesOfThePlacement(t *testing.T) {
	foreign := func(change func(*v1alpha1.MemberCache)) func(*v1alpha1.CacheCluster) []v1alpha1.MemberCache {
		return func(cc *v1alpha1.CacheCluster) []v1alpha1.MemberCache {
			mc := desiredMemberCache(cc, "a")
			change(&mc)
			return []v1alpha1.MemberCache{mc}
		}
	}
	of := func(names ...string) func(*v1alpha1.CacheCluster) []v1alpha1.MemberCache {
		return func(cc *v1alpha1.CacheCluster) (all []v1alpha1.MemberCache) {
			for _, name := range names {
				all = append(all, desiredMemberCache(cc, name))
			}
			return all
		}
	}
	type edit = func(*v1alpha1.CacheCluster)
	for _, c := range []struct {
		name, why              string
		placed, members        []string
		change                 edit
		existing               func(*v1alpha1.CacheCluster) []v1alpha1.MemberCache
		create, update, remove []string
		// entries of the summary: name, and the reason of a problem.
		entries []string
		// unreported members have no report that the summary may use.
		unreported []string
	}{
		{name: "a first plan", why: "one for each member", placed: []string{"b", "a"}, members: []string{"a", "b", "c"}, existing: of(),
			create: []string{"sessions.a", "sessions.b"}, entries: []string{"a", "b"}},
		{name: "all exist", why: "planning after applying plans nothing", placed: []string{"a", "b"}, members: []string{"a", "b"}, existing: of("a", "b"), entries: []string{"a", "b"}},
		{name: "a changed template", why: "all are updated", placed: []string{"a"}, members: []string{"a"}, existing: func(cc *v1alpha1.CacheCluster) []v1alpha1.MemberCache {
			older := cc.DeepCopy()
			older.Spec.Replicas = ptr.To[int32](9)
			return []v1alpha1.MemberCache{desiredMemberCache(older, "a")}
		}, update: []string{"sessions.a"}, entries: []string{"a"}},
		{name: "another spelling", why: "the same quantity is no change", placed: []string{"a"}, members: []string{"a"},
			change: func(cc *v1alpha1.CacheCluster) { cc.Spec.Memory = ptr.To(resource.MustParse("1Gi")) },
			existing: foreign(func(mc *v1alpha1.MemberCache) {
				mc.Spec.Template.Memory = ptr.To(resource.MustParse("1024Mi"))
			}), entries: []string{"a"}},
		{name: "labels removed", why: "they are restored", placed: []string{"a"}, members: []string{"a"}, existing: foreign(func(mc *v1alpha1.MemberCache) { mc.Labels = nil }),
			update: []string{"sessions.a"}, entries: []string{"a"}},
		{name: "the finalizer removed", why: "a deletion would orphan the children", placed: []string{"a"}, members: []string{"a"}, existing: foreign(func(mc *v1alpha1.MemberCache) { mc.Finalizers = nil }),
			update: []string{"sessions.a"}, entries: []string{"a"}},
		{name: "labels and finalizers of other owners", why: "they are kept", placed: []string{"a"}, members: []string{"a"}, existing: foreign(func(mc *v1alpha1.MemberCache) {
			mc.Labels["team"] = "x"
			mc.Finalizers = append(mc.Finalizers, "example.org/x")
		}), entries: []string{"a"}},
		{name: "one too many", why: "it is deleted, and reported until it is gone", placed: []string{"a"}, members: []string{"a", "b"}, existing: of("a", "b"),
			remove: []string{"sessions.b"}, entries: []string{"a", "b"}},
		{name: "one being deleted that is desired", why: "a new one can be created only when it is gone", placed: []string{"a"}, members: []string{"a"}, existing: foreign(func(mc *v1alpha1.MemberCache) {
			mc.DeletionTimestamp = &metav1.Time{Time: noon}
			mc.Spec.Revision = "older"
		}), entries: []string{"a"}},
		{name: "one being deleted that is not desired", why: "it is not deleted twice", placed: []string{"b"}, members: []string{"a", "b"}, existing: foreign(func(mc *v1alpha1.MemberCache) {
			mc.DeletionTimestamp = &metav1.Time{Time: noon}
		}), create: []string{"sessions.b"}, entries: []string{"a", "b"}},
		{name: "one of an earlier CacheCluster of this name", why: "another owner's object is not changed", placed: []string{"a", "b"}, members: []string{"a", "b"},
			existing: foreign(func(mc *v1alpha1.MemberCache) { mc.OwnerReferences[0].UID = "earlier" }),
			create:   []string{"sessions.b"}, entries: []string{"a NameConflict", "b"}},
		{name: "one of another owner that is not desired", why: "it is ignored", placed: []string{"b"}, members: []string{"a", "b"},
			existing: foreign(func(mc *v1alpha1.MemberCache) { mc.OwnerReferences = nil }), create: []string{"sessions.b"}, entries: []string{"b"}},
		{name: "one of another owner next to an own one", why: "it must not be used as the own one", placed: []string{"a"}, members: []string{"a"}, existing: func(cc *v1alpha1.CacheCluster) []v1alpha1.MemberCache {
			copied := desiredMemberCache(cc, "a")
			copied.Name, copied.OwnerReferences = "copied", nil
			return []v1alpha1.MemberCache{desiredMemberCache(cc, "a"), copied}
		}, entries: []string{"a"}},
		{name: "a member that does not exist", why: "the other members get theirs", placed: []string{"nowhere", "a"}, members: []string{"a"}, existing: of(),
			create: []string{"sessions.a"}, entries: []string{"a", "nowhere UnknownMember"}},
		{name: "a member that no longer exists", why: "its MemberCache stays until someone acts", placed: []string{"a", "b"}, members: []string{"a"}, existing: of("a", "b"),
			entries: []string{"a", "b UnknownMember"}},
		{name: "one of another owner in a member that does not exist", why: "its report is not about this CacheCluster", placed: []string{"a"}, members: nil,
			existing: foreign(func(mc *v1alpha1.MemberCache) { mc.OwnerReferences = nil }), entries: []string{"a UnknownMember"}, unreported: []string{"a"}},
		{name: "an invalid override", why: "nothing is changed in the member", placed: []string{"a", "b"}, members: []string{"a", "b"}, existing: of("a"),
			change: func(cc *v1alpha1.CacheCluster) {
				cc.Spec.Overrides = []v1alpha1.Override{{Clusters: []string{"a"}, Memory: ptr.To(resource.MustParse("1Mi"))}}
			}, create: []string{"sessions.b"}, entries: []string{"a InvalidSpec", "b"}},
		{name: "an invalid placement", why: "no MemberCache is changed", placed: []string{"b"}, members: []string{"a", "b"}, existing: of("a"),
			change: func(cc *v1alpha1.CacheCluster) {
				cc.Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}
			}, entries: []string{"a"}},
		{name: "being deleted", why: "all are deleted, whatever the placement is", placed: []string{"a", "c"}, members: []string{"a", "b", "c"}, existing: of("a", "b"),
			change: func(cc *v1alpha1.CacheCluster) { cc.DeletionTimestamp = &metav1.Time{Time: noon} },
			remove: []string{"sessions.a", "sessions.b"}, entries: []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := sessions(c.placed...)
			if c.change != nil {
				c.change(cc)
			}
			caches := c.existing(cc)
			before := slices.Clone(caches)
			for i := range caches {
				before[i] = *caches[i].DeepCopy()
			}
			s := &snapshot{now: noon, cacheCluster: cc, members: fleet(c.members...), memberCaches: caches}
			p := decide(s)
			for what, pair := range map[string][2][]string{
				"create": {c.create, sortedNames(p.create)}, "update": {c.update, sortedNames(p.update)},
				"remove": {c.remove, sortedNames(p.remove)}, "entries": {c.entries, entries(p.summary.Members)},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", c.why, what, diff)
				}
			}
			for _, m := range p.summary.Members {
				if m.Problem != nil && m.Problem.SelfResolving != (m.Problem.Reason == v1alpha1.ReasonNameConflict) {
					t.Errorf("%s: self-resolving is %t for %s", c.why, m.Problem.SelfResolving, m.Problem.Reason)
				}
				if m.Cache != nil && slices.Contains(c.unreported, m.Name) {
					t.Errorf("%s: the summary uses MemberCache %s", c.why, m.Cache.Name)
				}
			}
			if diff := cmp.Diff(before, caches); diff != "" {
				t.Errorf("the snapshot was changed:\n%s", diff)
			}
			slices.Reverse(s.memberCaches)
			slices.Reverse(s.members)
			if diff := cmp.Diff(entries(p.summary.Members), entries(decide(s).summary.Members)); diff != "" {
				t.Errorf("the plan depends on the order of the snapshot:\n%s", diff)
			}
		})
	}
}

func entries(members []status.Member) []string {
	var all []string
	for _, m := range members {
		text := m.Name
		if m.Problem != nil {
			text += " " + m.Problem.Reason
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func TestDesired_HasOwnerLabelsAndFinalizer(t *testing.T) {
	mc := desiredMemberCache(sessions("a"), "a")
	owner := metav1.GetControllerOf(&mc)
	if owner == nil || owner.UID != types.UID("owner") || owner.Kind != "CacheCluster" || owner.BlockOwnerDeletion == nil {
		t.Errorf("owner %+v", owner)
	}
	if mc.Name != "sessions.a" || mc.Namespace != "shop" || mc.Labels[v1alpha1.LabelCacheCluster] != "sessions" || mc.Labels[v1alpha1.LabelCluster] != "a" {
		t.Errorf("%s/%s with labels %v", mc.Namespace, mc.Name, mc.Labels)
	}
	if !slices.Contains(mc.Finalizers, v1alpha1.Finalizer) || !mc.Spec.CreateNamespace {
		t.Errorf("finalizers %v, createNamespace %t", mc.Finalizers, mc.Spec.CreateNamespace)
	}
}

func TestDecide_ExplainsAPlacementThatChoosesNoMember(t *testing.T) {
	cc := sessions()
	cc.Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "z"}}
	for _, c := range []struct {
		members []placement.Member
		says    string
	}{
		{nil, "the hub has no members; join one"},
		{fleet("a", "b"), `spec.placement.clusterSelector: "name=z" selects none of the 2 members`},
	} {
		p := decide(&snapshot{now: noon, cacheCluster: cc, members: c.members})
		if !strings.Contains(p.summary.NothingMatches, c.says) {
			t.Errorf("%q, want %q", p.summary.NothingMatches, c.says)
		}
	}
	if p := decide(&snapshot{now: noon, cacheCluster: sessions("nowhere"), members: fleet("a")}); p.summary.NothingMatches != "" {
		t.Errorf("a missing member is explained twice: %q", p.summary.NothingMatches)
	}
}

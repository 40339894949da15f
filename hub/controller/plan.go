package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/override"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// snapshot is all that was read of the hub, at the front of a reconcile.
type snapshot struct {
	now   time.Time
	cache *v1alpha1.CacheCluster
	// members that exist, and the MemberCaches that carry the CacheCluster's name.
	members []placement.Member
	caches  []v1alpha1.MemberCache
	// reachable holds what is known of the connection to each member that has a
	// ClusterProfile.
	reachable map[string]metav1.ConditionStatus
}

// owns says that there are MemberCaches of this CacheCluster, and not of another one of
// its name.
func (s *snapshot) owns() bool {
	return slices.ContainsFunc(s.caches, func(mc v1alpha1.MemberCache) bool { return metav1.IsControlledBy(&mc, s.cache) })
}

// plan is what to write on the hub, and what the verdict shall know.
type plan struct {
	create, update, remove []*v1alpha1.MemberCache
	// abandon are those to be let go although their children are not known to be gone.
	abandon []*v1alpha1.MemberCache
	verdict status.Input
}

// decide plans the MemberCaches of a CacheCluster. It is pure. A placement that
// can't be read leaves every MemberCache as it is.
func decide(s *snapshot) plan {
	cc := s.cache
	p := plan{verdict: status.Input{
		Generation: cc.Generation, Deleting: cc.DeletionTimestamp != nil, Now: s.now,
		Revision: override.Revision(&cc.Spec.CacheTemplate),
		Selector: fmt.Sprintf("%s=%s", v1alpha1.LabelCacheCluster, cc.Name),
	}}
	ours, others := map[string]*v1alpha1.MemberCache{}, map[string]*v1alpha1.MemberCache{}
	for i := range s.caches {
		if mc := &s.caches[i]; metav1.IsControlledBy(mc, cc) {
			ours[mc.Name] = mc
		} else {
			others[mc.Name] = mc
		}
	}
	decision := placement.Decision{}
	if !p.verdict.Deleting {
		decision = placement.Place(cc.Spec.Placement, s.members)
		p.verdict.PlacementProblem = decision.Problem
	}
	if decision.Problem != "" {
		p.verdict.Abandoned = cc.Status.Abandoned
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			mc := ours[name]
			p.verdict.Members = append(p.verdict.Members, status.Member{Name: mc.Spec.Cluster, Placed: true,
				Replicas: replicas(&mc.Spec.Template), Revision: mc.Spec.Revision, Cache: mc})
		}
		return p
	}
	for _, missing := range decision.Missing {
		name := memberCacheName(cc.Name, missing.Name)
		p.verdict.Members = append(p.verdict.Members, status.Member{Name: missing.Name, Placed: true,
			Cache: ours[name], Problem: unknownMember(missing)})
		delete(ours, name)
	}
	for _, member := range decision.Chosen {
		name := memberCacheName(cc.Name, member.Name)
		p.place(cc, member, ours[name], others[name])
		delete(ours, name)
	}
	leaving := map[string]*v1alpha1.MemberCache{}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		p.unplace(cc, ours[name])
		leaving[ours[name].Spec.Cluster] = ours[name]
	}
	p.letGo(s, leaving)
	if !p.verdict.Deleting && len(decision.Chosen)+len(decision.Missing) == 0 {
		p.verdict.NothingMatches = nothingMatches(cc.Spec.Placement, s.members)
	}
	return p
}

// entry of a member in the verdict's input, or nil.
func (p *plan) entry(member string) *status.Member {
	for i := range p.verdict.Members {
		if p.verdict.Members[i].Name == member {
			return &p.verdict.Members[i]
		}
	}
	return nil
}

// place plans one chosen member: existing is its MemberCache, other one of that
// name which is not ours; either may be nil.
func (p *plan) place(cc *v1alpha1.CacheCluster, member placement.Member, existing, other *v1alpha1.MemberCache) {
	template, problems := override.Apply(cc.Spec.CacheTemplate, cc.Spec.Overrides, member)
	for _, p := range render.CheckPolicies(&cc.Spec.Policies) {
		problems = append(problems, "spec."+p.String())
	}
	entry := status.Member{Name: member.Name, Placed: true, Replicas: replicas(&template), Revision: override.Revision(&template), Cache: existing}
	switch {
	case len(problems) > 0:
		entry.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec,
			Message: strings.Join(problems, "; "), Hint: "correct the field; nothing was changed in the member"}
	case other != nil:
		entry.Problem = nameConflict(other)
	case existing == nil:
		p.create = append(p.create, desired(cc, member.Name, template, entry.Revision))
	case existing.DeletionTimestamp == nil:
		if updated := revised(existing, desired(cc, member.Name, template, entry.Revision)); updated != nil {
			p.update = append(p.update, updated)
		}
	}
	p.verdict.Members = append(p.verdict.Members, entry)
}

// unplace plans a MemberCache that is not wanted any more. What becomes of its
// children is said before it is deleted: who changed deletion.policy in the same
// moment must not lose them.
func (p *plan) unplace(cc *v1alpha1.CacheCluster, existing *v1alpha1.MemberCache) {
	switch {
	case !equality.Semantic.DeepEqual(existing.Spec.Policies, cc.Spec.Policies):
		updated := existing.DeepCopy()
		updated.Spec.Policies = *cc.Spec.Policies.DeepCopy()
		p.update = append(p.update, updated)
	case existing.DeletionTimestamp == nil:
		p.remove = append(p.remove, existing)
	}
	p.verdict.Members = append(p.verdict.Members, status.Member{Name: existing.Spec.Cluster, Cache: existing,
		Revision: existing.Spec.Revision})
}

// desired is the MemberCache of one member. Its finalizer is there from its first
// moment on, so that its children can't be left behind.
func desired(cc *v1alpha1.CacheCluster, member string, template v1alpha1.CacheTemplate, revision string) *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{
			Name: memberCacheName(cc.Name, member), Namespace: cc.Namespace,
			Labels:          map[string]string{v1alpha1.LabelCacheCluster: cc.Name, v1alpha1.LabelCluster: member},
			Finalizers:      []string{v1alpha1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cc, v1alpha1.GroupVersion.WithKind("CacheCluster"))},
		},
		Spec: v1alpha1.MemberCacheSpec{
			CacheCluster: cc.Name, CacheClusterUID: string(cc.UID), Cluster: member, Revision: revision, Template: template,
			CreateNamespace: ptr.Deref(cc.Spec.Placement.CreateNamespace, true),
			Policies:        *cc.Spec.Policies.DeepCopy(),
		},
	}
}

// memberCacheName of a cache in a member. A CacheCluster's name holds no dot, so
// no two give the same.
func memberCacheName(cacheCluster, member string) string { return cacheCluster + "." + member }

// revised gives the existing MemberCache with what we want of it, or nil if it
// already is so. Labels and finalizers of others stay.
func revised(existing, want *v1alpha1.MemberCache) *v1alpha1.MemberCache {
	updated := existing.DeepCopy()
	updated.Spec = want.Spec
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	for key, value := range want.Labels {
		updated.Labels[key] = value
	}
	for _, finalizer := range want.Finalizers {
		controllerutil.AddFinalizer(updated, finalizer)
	}
	if equality.Semantic.DeepEqual(existing.Spec, updated.Spec) && equality.Semantic.DeepEqual(existing.Labels, updated.Labels) &&
		equality.Semantic.DeepEqual(existing.Finalizers, updated.Finalizers) {
		return nil
	}
	return updated
}

func unknownMember(m placement.Missing) *v1alpha1.Outcome {
	return &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonUnknownMember,
		Message: fmt.Sprintf("%s: %q: the hub has no member of this name", m.Field, m.Name),
		Hint:    fmt.Sprintf("join it: reconcile-lab join %s --kubeconfig FILE; or correct the name: kubectl get clusterprofiles -A lists them", m.Name)}
}

func nameConflict(existing *v1alpha1.MemberCache) *v1alpha1.Outcome {
	return &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNameConflict, SelfResolving: true,
		Message: fmt.Sprintf("MemberCache %s belongs to an earlier CacheCluster of this name or to somebody else", existing.Name),
		Hint:    "wait until it is gone, or delete it: kubectl delete mcache -n " + existing.Namespace + " " + existing.Name}
}

func nothingMatches(p v1alpha1.Placement, members []placement.Member) string {
	if len(members) == 0 {
		return "spec.placement: the hub has no members yet: join one: reconcile-lab join NAME --kubeconfig FILE"
	}
	return fmt.Sprintf("spec.placement.clusterSelector: %q matches none of the %d members: compare with kubectl get clusterprofiles -A --show-labels",
		metav1.FormatLabelSelector(p.ClusterSelector), len(members))
}

func replicas(t *v1alpha1.CacheTemplate) int32 { return ptr.Deref(t.Replicas, 1) }

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/override"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
)

// plan holds the writes to MemberCaches, and the input of the summary.
type plan struct {
	create, update, remove []*v1alpha1.MemberCache
	// abandon lists the MemberCaches to release although their children may exist.
	abandon []*v1alpha1.MemberCache
	summary status.Input
}

// decide computes the plan for a CacheCluster. It is pure. A placement that is invalid
// changes no MemberCache.
func decide(s *snapshot) plan {
	cc := s.cacheCluster
	p := plan{summary: status.Input{
		Generation: cc.Generation, Deleting: cc.DeletionTimestamp != nil, Now: s.now,
		Revision: override.Revision(&cc.Spec.CacheTemplate),
		Selector: fmt.Sprintf("%s=%s", v1alpha1.LabelCacheCluster, cc.Name),
	}}
	own, foreign := map[string]*v1alpha1.MemberCache{}, map[string]*v1alpha1.MemberCache{}
	for i := range s.memberCaches {
		if mc := &s.memberCaches[i]; metav1.IsControlledBy(mc, cc) {
			own[mc.Name] = mc
		} else {
			foreign[mc.Name] = mc
		}
	}
	decision := placement.Decision{}
	if !p.summary.Deleting {
		decision = placement.Place(cc.Spec.Placement, s.members)
		p.summary.PlacementProblem = decision.Problem
	}
	if decision.Problem != "" {
		p.summary.Abandoned = cc.Status.Abandoned
		for _, name := range slices.Sorted(maps.Keys(own)) {
			mc := own[name]
			p.summary.Members = append(p.summary.Members, status.Member{Name: mc.Spec.Cluster, Placed: true,
				Replicas: replicas(&mc.Spec.Template), Revision: mc.Spec.Revision, Cache: mc})
		}
		return p
	}
	for _, missing := range decision.Missing {
		name := memberCacheName(cc.Name, missing.Name)
		p.summary.Members = append(p.summary.Members, status.Member{Name: missing.Name, Placed: true,
			Cache: own[name], Problem: unknownMember(missing)})
		delete(own, name)
	}
	for _, member := range decision.Chosen {
		name := memberCacheName(cc.Name, member.Name)
		p.place(cc, member, own[name], foreign[name])
		delete(own, name)
	}
	removed := map[string]*v1alpha1.MemberCache{}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		p.unplace(cc, own[name])
		removed[own[name].Spec.Cluster] = own[name]
	}
	p.planAbandon(s, removed)
	if !p.summary.Deleting && len(decision.Chosen)+len(decision.Missing) == 0 {
		p.summary.NothingMatches = nothingMatches(cc.Spec.Placement, s.members)
	}
	return p
}

// entry returns the input of the summary for a member, or nil.
func (p *plan) entry(member string) *status.Member {
	for i := range p.summary.Members {
		if p.summary.Members[i].Name == member {
			return &p.summary.Members[i]
		}
	}
	return nil
}

// place plans a chosen member. existing is its MemberCache; foreign is a MemberCache
// of that name with another owner. Either may be nil.
func (p *plan) place(cc *v1alpha1.CacheCluster, member placement.Member, existing, foreign *v1alpha1.MemberCache) {
	template, problems := override.Apply(cc.Spec.CacheTemplate, cc.Spec.Overrides, member)
	for _, p := range validation.Policies(&cc.Spec.Policies) {
		problems = append(problems, "spec."+p.String())
	}
	entry := status.Member{Name: member.Name, Placed: true, Replicas: replicas(&template), Revision: override.Revision(&template), Cache: existing}
	switch {
	case len(problems) > 0:
		entry.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec,
			Message: strings.Join(problems, "; "), Hint: fmt.Sprintf("correct the field: kubectl edit cc -n %s %s; nothing was changed in the member", cc.Namespace, cc.Name)}
	case foreign != nil:
		entry.Problem = nameConflict(foreign)
	case existing == nil:
		p.create = append(p.create, desired(cc, member.Name, template, entry.Revision))
	case existing.DeletionTimestamp == nil:
		if updated := revised(existing, desired(cc, member.Name, template, entry.Revision)); updated != nil {
			p.update = append(p.update, updated)
		}
	}
	p.summary.Members = append(p.summary.Members, entry)
}

// unplace plans a MemberCache whose member is no longer chosen. Its policies are
// updated before it is deleted: a change of deletion.policy in the same apply must
// decide what happens to the children.
func (p *plan) unplace(cc *v1alpha1.CacheCluster, existing *v1alpha1.MemberCache) {
	switch {
	case !equality.Semantic.DeepEqual(existing.Spec.Policies, cc.Spec.Policies):
		updated := existing.DeepCopy()
		updated.Spec.Policies = *cc.Spec.Policies.DeepCopy()
		p.update = append(p.update, updated)
	case existing.DeletionTimestamp == nil:
		p.remove = append(p.remove, existing)
	}
	p.summary.Members = append(p.summary.Members, status.Member{Name: existing.Spec.Cluster, Cache: existing,
		Revision: existing.Spec.Revision})
}

// desired returns the MemberCache of a member. It has the finalizer from the start, so
// that a deletion at any time removes the children.
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

// memberCacheName returns the name of the MemberCache of a CacheCluster in a member.
// The name of a CacheCluster has no dot, so the result is unique.
func memberCacheName(cacheCluster, member string) string { return cacheCluster + "." + member }

// revised returns the existing MemberCache with the desired spec, labels and
// finalizers, or nil if it has them. Labels and finalizers of other owners stay.
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

// unknownMember returns the problem of a member that placement names and that has no
// ClusterProfile.
func unknownMember(m placement.Missing) *v1alpha1.Outcome {
	return &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonUnknownMember,
		Message: fmt.Sprintf("%s: %q: no ClusterProfile on the hub has this name", m.Field, m.Name),
		Hint:    fmt.Sprintf("join the member: reconcile-lab join %s --kubeconfig FILE; or correct the name; list the members: kubectl get clusterprofiles -A", m.Name)}
}

// ownerOf names the controller of a MemberCache of another owner.
func ownerOf(mc *v1alpha1.MemberCache) string {
	if owner := metav1.GetControllerOf(mc); owner != nil {
		return fmt.Sprintf("%s %s with UID %s", owner.Kind, owner.Name, owner.UID)
	}
	return "no CacheCluster"
}

// nameConflict returns the problem of a member whose MemberCache name is taken.
func nameConflict(existing *v1alpha1.MemberCache) *v1alpha1.Outcome {
	return &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonNameConflict, SelfResolving: true,
		Message: fmt.Sprintf("MemberCache %s/%s exists and is owned by %s", existing.Namespace, existing.Name, ownerOf(existing)),
		Hint:    "wait until it is deleted, or delete it: kubectl delete mcache -n " + existing.Namespace + " " + existing.Name}
}

// nothingMatches returns why placement chose no member.
func nothingMatches(p v1alpha1.Placement, members []placement.Member) string {
	if len(members) == 0 {
		return "spec.placement: the hub has no members; join one: reconcile-lab join NAME --kubeconfig FILE"
	}
	return fmt.Sprintf("spec.placement.clusterSelector: %q selects none of the %d members; compare it with their labels: kubectl get clusterprofiles -A --show-labels",
		metav1.FormatLabelSelector(p.ClusterSelector), len(members))
}

func replicas(t *v1alpha1.CacheTemplate) int32 { return ptr.Deref(t.Replicas, 1) }

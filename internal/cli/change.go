package cli

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// change is what apply changed in one CacheCluster.
type change struct {
	verb  string   // created, updated, or empty for no change
	parts []string // changed parts, such as "stateful workload"
	note  string   // how far the change has come, empty if it is complete
}

// compare returns what differs between two versions of a CacheCluster. before is
// nil for a new one.
func compare(before, after *v1alpha1.CacheCluster) change {
	if before == nil {
		return change{verb: "created", parts: []string{"stateful workload", "service"}}
	}
	c := change{verb: "updated"}
	if workloadDiffers(before.Spec, after.Spec) {
		c.parts = append(c.parts, "stateful workload")
	}
	// The port of the exporter is a port of the Service.
	if !equality.Semantic.DeepEqual(before.Spec.Service, after.Spec.Service) ||
		!equality.Semantic.DeepEqual(before.Spec.Exporter, after.Spec.Exporter) {
		c.parts = append(c.parts, "service")
	}
	if !equality.Semantic.DeepEqual(before.Spec.Policies, after.Spec.Policies) {
		c.parts = append(c.parts, "policies")
	}
	if !equality.Semantic.DeepEqual(before.Spec.Placement, after.Spec.Placement) {
		c.parts = append(c.parts, "placement")
	}
	if !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) {
		c.parts = append(c.parts, "metadata")
	}
	if len(c.parts) == 0 {
		return change{}
	}
	return c
}

// workloadDiffers compares all fields except those of the Service, the placement
// and the policies.
func workloadDiffers(a, b v1alpha1.CacheClusterSpec) bool {
	a.Placement, b.Placement = v1alpha1.Placement{}, v1alpha1.Placement{}
	a.Policies, b.Policies = v1alpha1.Policies{}, v1alpha1.Policies{}
	a.Service, b.Service = nil, nil
	return !equality.Semantic.DeepEqual(a, b)
}

func (c change) String() string {
	if c.verb == "" {
		return "nothing to change"
	}
	parts := strings.Join(c.parts, ", ")
	if i := strings.LastIndex(parts, ", "); i >= 0 {
		parts = parts[:i] + " and " + parts[i+2:]
	}
	return strings.TrimSpace(c.verb + " " + parts + " " + c.note)
}

// placementNote returns the members that a change of placement added and removed,
// such as "(added b; removed a)".
func placementNote(before, after *v1alpha1.CacheCluster) string {
	names := func(cc *v1alpha1.CacheCluster) []string {
		var names []string
		for _, m := range cc.Status.Clusters {
			if m.State != v1alpha1.MemberDeleting {
				names = append(names, m.Name)
			}
		}
		return names
	}
	missingIn := func(others, all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(others, n) })
	}
	was, is := names(before), names(after)
	var parts []string
	if added := missingIn(was, is); len(added) > 0 {
		parts = append(parts, "added "+strings.Join(added, ", "))
	}
	if removed := missingIn(is, was); len(removed) > 0 {
		parts = append(parts, "removed "+strings.Join(removed, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, "; ") + ")"
}

// propagation counts the members that have a change. The revision of a member is
// not enough: it covers its template with overrides, and no policies.
type propagation struct {
	// members is the number of members that must get the change.
	members int
	// complete members reported the whole change, absent ones have no part of it. The
	// other members may have a part.
	complete, absent int
}

func propagationOf(cc *v1alpha1.CacheCluster, generation int64) propagation {
	var p propagation
	invalidPlacement := readyCondition(cc).Reason == v1alpha1.ReasonInvalidPlacement
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.State == v1alpha1.MemberDeleting {
			continue
		}
		p.members++
		switch {
		case cc.Status.ObservedGeneration < generation:
			// The status of the members is of an older spec.
		case invalidPlacement || blocksEveryWrite(m.Reason):
			p.absent++
		case reportsWholeSpec(m):
			p.complete++
		}
	}
	return p
}

// reportsWholeSpec reports whether the status of a member is of the present spec and
// every child is written. A member with an error of any class may lack a child.
func reportsWholeSpec(m *v1alpha1.ClusterStatus) bool {
	switch {
	case m.Revision == "":
		return false
	case m.Reason == v1alpha1.ReasonDriftFight:
		// Between two changes by the other controller every field is as desired.
		return !slices.ContainsFunc(m.OpenDrifts, func(f v1alpha1.DriftFinding) bool { return !f.Foreign })
	case m.Class != "" || m.Reason == v1alpha1.ReasonPending:
		// Pending is the reason while the report is of an older spec.
		return false
	}
	return m.State == v1alpha1.MemberReady || m.State == v1alpha1.MemberDegraded || m.State == v1alpha1.MemberProgressing
}

// blocksEveryWrite reports whether nothing is written to a member for this reason.
func blocksEveryWrite(reason string) bool {
	switch reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonUnknownMember, v1alpha1.ReasonNameConflict, v1alpha1.ReasonNamespaceMissing:
		return true
	}
	return false
}

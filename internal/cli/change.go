package cli

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// change is what an apply did to one CacheCluster.
type change struct {
	verb string   // created, updated, or empty where nothing changed
	what []string // such as "stateful workload"
	// apart from the children
	note string
}

// compare tells what of a cache an apply changed; before is nil for a new one.
func compare(before, after *v1alpha1.CacheCluster) change {
	if before == nil {
		return change{verb: "created", what: []string{"stateful workload", "service"}}
	}
	c := change{verb: "updated"}
	if workloadDiffers(before.Spec, after.Spec) {
		c.what = append(c.what, "stateful workload")
	}
	// The exporter's port is a port of the Service.
	if !equality.Semantic.DeepEqual(before.Spec.Service, after.Spec.Service) ||
		!equality.Semantic.DeepEqual(before.Spec.Exporter, after.Spec.Exporter) {
		c.what = append(c.what, "service")
	}
	if !equality.Semantic.DeepEqual(before.Spec.Policies, after.Spec.Policies) {
		c.what = append(c.what, "policies")
	}
	if !equality.Semantic.DeepEqual(before.Spec.Placement, after.Spec.Placement) {
		c.what = append(c.what, "placement")
	}
	if !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) {
		c.what = append(c.what, "metadata")
	}
	if len(c.what) == 0 {
		return change{}
	}
	return c
}

// workloadDiffers compares all but what concerns only the Service, only the choice
// of members, or only what the hub does about changes and deletions.
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
	what := strings.Join(c.what, ", ")
	if i := strings.LastIndex(what, ", "); i >= 0 {
		what = what[:i] + " and " + what[i+2:]
	}
	return strings.TrimSpace(c.verb + " " + what + " " + c.note)
}

// moved says which members a change of placement added and removed.
func moved(before, after *v1alpha1.CacheCluster) string {
	names := func(cc *v1alpha1.CacheCluster) []string {
		if cc == nil {
			return nil
		}
		var names []string
		for _, m := range cc.Status.Clusters {
			if m.State != v1alpha1.MemberDeleting {
				names = append(names, m.Name)
			}
		}
		return names
	}
	was, is := names(before), names(after)
	var parts []string
	for _, d := range []struct {
		word     string
		of, less []string
	}{{"added", is, was}, {"removed", was, is}} {
		only := slices.DeleteFunc(slices.Clone(d.of), func(n string) bool { return slices.Contains(d.less, n) })
		if len(only) > 0 {
			parts = append(parts, d.word+" "+strings.Join(only, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, "; ") + ")"
}

// reach is what is known of how far a change of cc has come. A revision alone does
// not tell: it is of a member's own template, and holds nothing of the policies.
type reach struct {
	// members that are to hold the change, those that were seen to hold it in full,
	// and those that are known to hold nothing of it. The others may hold a part.
	members, full, none int
}

func reached(cc *v1alpha1.CacheCluster, generation int64) reach {
	var r reach
	unplaced := readyCondition(cc).Reason == v1alpha1.ReasonInvalidPlacement
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.State == v1alpha1.MemberDeleting {
			continue
		}
		r.members++
		switch {
		case cc.Status.ObservedGeneration < generation:
			// What the status says of members is about an older spec.
		case unplaced || untouched(m):
			r.none++
		case inFull(m):
			r.full++
		}
	}
	return r
}

// inFull says that a member was seen to hold the present spec. A report about an
// older one is shown as Pending; an error of any class may leave children unwritten,
// though others are written by then.
func inFull(m *v1alpha1.ClusterStatus) bool {
	switch {
	case m.Revision == "":
		return false
	case m.Reason == v1alpha1.ReasonDriftFight:
		// Between two rounds of a fight all is as the spec asks.
		return !slices.ContainsFunc(m.OpenDrifts, func(f v1alpha1.DriftFinding) bool { return !f.Foreign })
	case m.Class != "" || m.Reason == v1alpha1.ReasonPending:
		return false
	}
	return m.State == v1alpha1.MemberReady || m.State == v1alpha1.MemberDegraded || m.State == v1alpha1.MemberProgressing
}

// untouched says that nothing is written to a member for this reason.
func untouched(m *v1alpha1.ClusterStatus) bool {
	switch m.Reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonUnknownMember, v1alpha1.ReasonNameConflict, v1alpha1.ReasonNamespaceMissing:
		return true
	}
	return false
}

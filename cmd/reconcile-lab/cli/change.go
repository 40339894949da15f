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

// workloadDiffers compares all but what concerns only the Service or only the
// choice of members.
func workloadDiffers(a, b v1alpha1.CacheClusterSpec) bool {
	a.Placement, b.Placement = v1alpha1.Placement{}, v1alpha1.Placement{}
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

// reach is the number of members that hold the given generation of cc.
func reach(cc *v1alpha1.CacheCluster, generation int64) int {
	there := 0
	for _, m := range cc.Status.Clusters {
		if cc.Status.ObservedGeneration >= generation && m.Revision != "" && m.Revision == cc.Status.Revision {
			there++
		}
	}
	return there
}

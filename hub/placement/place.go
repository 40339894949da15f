package placement

import (
	"fmt"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Member is a member cluster in the inventory.
type Member struct {
	Name   string
	Labels map[string]string
}

// Missing is a member that the placement names and the inventory does not have.
type Missing struct {
	// Name of the member, and Field that names it, such as "spec.placement.clusters[1]".
	Name, Field string
}

// Decision is the result of a placement.
type Decision struct {
	// Chosen members, each once.
	Chosen []Member
	// Missing members that the placement names.
	Missing []Missing
	// Problem with the placement itself, or empty.
	Problem string
}

// Place returns which members of the inventory run the cache.
func Place(p v1alpha1.Placement, members []Member) Decision {
	selected, err := Selector(p.ClusterSelector)
	if err != nil {
		return Decision{Problem: fmt.Sprintf("spec.placement.clusterSelector: %v; use matchLabels, or matchExpressions with In, NotIn (both with values), Exists or DoesNotExist (both without)", err)}
	}
	byName := make(map[string]Member, len(members))
	for _, m := range members {
		byName[m.Name] = m
	}
	var d Decision
	taken := map[string]bool{}
	for i, name := range p.Clusters {
		switch m, exists := byName[name]; {
		case taken[name]:
		case exists:
			taken[name] = true
			d.Chosen = append(d.Chosen, m)
		default:
			taken[name] = true
			d.Missing = append(d.Missing, Missing{Name: name, Field: fmt.Sprintf("spec.placement.clusters[%d]", i)})
		}
	}
	names := make([]string, 0, len(members))
	for name, m := range byName {
		if !taken[name] && selected.Matches(labels.Set(m.Labels)) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		d.Chosen = append(d.Chosen, byName[name])
	}
	return d
}

// Selector parses a label selector. A missing one selects no member, an empty one all.
func Selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Nothing(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Usable reports whether the name of a member is valid in labels and object names, and the
// reason if it is not. The inventory ignores such a member.
func Usable(name string) (reason string, ok bool) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name: %q: a member's name must be a DNS label of at most 63 characters: %s", name, problems[0]), false
	}
	return "", true
}

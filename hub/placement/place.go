package placement

import (
	"fmt"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Member is what placement knows of a member cluster.
type Member struct {
	Name   string
	Labels map[string]string
}

// Missing is a member that the placement names and the inventory lacks.
type Missing struct {
	// Name and Field, such as "spec.placement.clusters[1]".
	Name, Field string
}

// Decision says which members run the cache.
type Decision struct {
	// Chosen members, each once.
	Chosen []Member
	// Missing members that were named.
	Missing []Missing
	// Problem with the placement itself, or empty.
	Problem string
}

// Place chooses among the members of the inventory.
func Place(p v1alpha1.Placement, members []Member) Decision {
	selected, err := Selector(p.ClusterSelector)
	if err != nil {
		return Decision{Problem: fmt.Sprintf("spec.placement.clusterSelector: %v: use matchLabels, or matchExpressions with In, NotIn (both with values), Exists or DoesNotExist (both without)", err)}
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

// Selector reads a label selector as placements mean it: an absent one selects
// nobody, an empty one everybody.
func Selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Nothing(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Usable says whether a member's name can stand in labels and object names; one
// that can't is left out of the inventory with this reason.
func Usable(name string) (reason string, ok bool) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name: %q: a member's name must be a DNS label of at most 63 characters: %s", name, problems[0]), false
	}
	return "", true
}

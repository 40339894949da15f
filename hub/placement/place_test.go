package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var fleet = []Member{
	{"us-1", map[string]string{"region": "us", "tier": "prod"}},
	{"eu-2", map[string]string{"region": "eu", "tier": "prod"}},
	{"eu-1", map[string]string{"region": "eu", "tier": "test"}},
	{"bare", nil},
}

func names(members []Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Name)
	}
	return all
}

func TestPlace_ChoosesNamedAndSelectedMembers(t *testing.T) {
	labels := func(pairs ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			s.MatchLabels[pairs[i]] = pairs[i+1]
		}
		return s
	}
	expression := func(op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: op, Values: values}}}
	}
	for _, c := range []struct {
		name, why string
		placement v1alpha1.Placement
		chosen    []string
		missing   []Missing
	}{
		{"nothing", "a missing selector selects no member", v1alpha1.Placement{}, nil, nil},
		{"an empty selector", "it selects all members, by name", v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, []string{"bare", "eu-1", "eu-2", "us-1"}, nil},
		{"labels", "all of them must match", v1alpha1.Placement{ClusterSelector: labels("region", "eu", "tier", "prod")}, []string{"eu-2"}, nil},
		{"labels that no member has", "this is no problem of the placement", v1alpha1.Placement{ClusterSelector: labels("region", "ap")}, nil, nil},
		{"an expression", "as everywhere in Kubernetes", v1alpha1.Placement{ClusterSelector: expression(metav1.LabelSelectorOpIn, "eu", "us")}, []string{"eu-1", "eu-2", "us-1"}, nil},
		{"an absent label", "members without labels match it", v1alpha1.Placement{ClusterSelector: expression(metav1.LabelSelectorOpDoesNotExist)}, []string{"bare"}, nil},
		{"names", "in the order of preference", v1alpha1.Placement{Clusters: []string{"us-1", "eu-1"}}, []string{"us-1", "eu-1"}, nil},
		{"a name twice", "it counts once", v1alpha1.Placement{Clusters: []string{"us-1", "us-1"}}, []string{"us-1"}, nil},
		{"names and labels", "named members come first, and no member comes twice", v1alpha1.Placement{Clusters: []string{"us-1", "eu-2"}, ClusterSelector: labels("region", "eu")}, []string{"us-1", "eu-2", "eu-1"}, nil},
		{"an unknown name", "the other members are chosen", v1alpha1.Placement{Clusters: []string{"eu-1", "ap-1", "ap-1"}}, []string{"eu-1"}, []Missing{{"ap-1", "spec.placement.clusters[1]"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Place(c.placement, fleet)
			if diff := cmp.Diff(c.chosen, names(got.Chosen)); diff != "" {
				t.Errorf("%s: chosen (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.missing, got.Missing); diff != "" || got.Problem != "" {
				t.Errorf("%s: problem %q, missing (-want +got):\n%s", c.why, got.Problem, diff)
			}
			for range 3 {
				// Another order of the inventory.
				other := append(slices.Clone(fleet[1:]), fleet[0])
				slices.Reverse(other)
				if diff := cmp.Diff(got, Place(c.placement, other)); diff != "" {
					t.Errorf("the decision depends on the order of members:\n%s", diff)
				}
			}
		})
	}
}

func TestPlace_ChoosesNoMemberForAnInvalidPlacement(t *testing.T) {
	got := Place(v1alpha1.Placement{Clusters: []string{"eu-1"},
		ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Near"}}}}, fleet)
	if len(got.Chosen) > 0 || len(got.Missing) > 0 || !strings.Contains(got.Problem, "spec.placement.clusterSelector") || !strings.Contains(got.Problem, "Near") {
		t.Errorf("%+v", got)
	}
}

func TestUsable_AcceptsNamesThatAreValidInLabelsAndObjectNames(t *testing.T) {
	for name, want := range map[string]bool{"eu-1": true, "1": true, strings.Repeat("a", 63): true,
		strings.Repeat("a", 64): false, "eu.1": false, "EU": false, "": false} {
		reason, ok := Usable(name)
		if ok != want || ok != (reason == "") {
			t.Errorf("%q: usable %t (%s), want %t", name, ok, reason, want)
		}
	}
}

package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// ValidateName says whether a member may be called name: it is the name of a
// ClusterProfile, the value of a label, and part of MemberCaches' names.
func ValidateName(name string) error {
	if name == "" {
		return fmt.Errorf(`the member's name is empty: give it one, such as eu-1`)
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		return fmt.Errorf("member name %q has %d characters: shorten it to at most %d",
			name, len(name), validation.DNS1123LabelMaxLength)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("member name %q: use only a-z, 0-9 and '-', with a letter or digit at both ends, such as %q",
			name, suggestName(name))
	}
	return nil
}

// suggestName is the valid name that is nearest to a bad one.
func suggestName(name string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if s = strings.Trim(s, "-"); s == "" {
		return "eu-1"
	}
	return s
}

// ValidateLabels refuses what the API server would refuse only at the last
// write, and the one label that is not the caller's to set.
func ValidateLabels(labels map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k == inventoryv1alpha1.LabelClusterManagerKey {
			return fmt.Errorf("label %s names the cluster manager and is set by join: leave it out", k)
		}
		if problems := validation.IsQualifiedName(k); len(problems) > 0 {
			return fmt.Errorf("label key %q: %s", k, strings.Join(problems, "; "))
		}
		if problems := validation.IsValidLabelValue(labels[k]); len(problems) > 0 {
			return fmt.Errorf("label %s has the value %q: %s", k, labels[k], strings.Join(problems, "; "))
		}
	}
	return nil
}

package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// ValidateName returns an error unless a member may have the name: it is the name of a
// ClusterProfile, the value of a label, and a part of the names of MemberCaches.
func ValidateName(name string) error {
	if name == "" {
		return fmt.Errorf(`member name "": must not be empty; use one such as eu-1`)
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		return fmt.Errorf("member name %q: has %d characters; shorten it to at most %d",
			name, len(name), validation.DNS1123LabelMaxLength)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("member name %q: must consist of a-z, 0-9 and '-', with a letter or digit at both ends; use one such as %q",
			name, suggestName(name))
	}
	return nil
}

// suggestName returns a valid name that is close to an invalid one.
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

// ValidateLabels returns an error for labels that the API server would refuse only at the
// last write, and for the label that Join sets.
func ValidateLabels(labels map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k == inventoryv1alpha1.LabelClusterManagerKey {
			return fmt.Errorf("label %s: names the cluster manager and is set by join; remove it", k)
		}
		if problems := validation.IsQualifiedName(k); len(problems) > 0 {
			return fmt.Errorf("label key %q: %s", k, strings.Join(problems, "; "))
		}
		if problems := validation.IsValidLabelValue(labels[k]); len(problems) > 0 {
			return fmt.Errorf("label %s: value %q: %s", k, labels[k], strings.Join(problems, "; "))
		}
	}
	return nil
}

package drift

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// maxPaths limits the paths in a status. A wrong label selector can affect hundreds.
const maxPaths = 10

// Describe returns the finding of a status: how a live object differs from the intent in the
// given fields, and who changed them. A change names its own manager if it differs from
// the latest one. A nil intent means that every field counts, with no former value.
func Describe(object string, intent *unstructured.Unstructured, live metav1.Object, fields *Fields) v1alpha1.DriftFinding {
	if intent != nil {
		fields = ChangedFields(intent, live, fields)
	}
	rekeyed := RekeyedItems(intent, live, fields)
	latest := Attribute(live, livePaths(rekeyed, fields))
	finding := v1alpha1.DriftFinding{Object: object, Manager: latest.Manager, Operation: latest.Operation}
	finding.Fields, finding.OmittedFields = Paths(fields)
	if !latest.At.IsZero() {
		finding.ChangedAt = &metav1.Time{Time: latest.At}
	}
	finding.Changes = changes(intent, live, fields, rekeyed, latest.Manager)
	return finding
}

// ChangedFields returns those of the fields whose live value differs from the intent.
// Another client can own a field that it set back to the value of the intent.
func ChangedFields(intent *unstructured.Unstructured, live metav1.Object, fields *Fields) *Fields {
	liveContent, ok := content(live)
	if fields == nil || !ok {
		return fields
	}
	changed, rekeyed := NewFields(), RekeyedItems(intent, live, fields)
	fields.Leaves().Iterate(func(path fieldpath.Path) {
		desired, inIntent := valueAt(intent.Object, path)
		observed, inLive := valueAt(liveContent, livePath(rekeyed, path))
		if !inIntent || !inLive || !value.Equals(value.NewValueInterface(desired), value.NewValueInterface(observed)) {
			changed.Insert(path.Copy())
		}
	})
	return changed
}

// Paths returns the first ten paths of the fields, sorted, and the number of omitted ones.
func Paths(fields *Fields) (paths []string, omitted int32) {
	leaves := leavesOf(fields)
	for _, leaf := range leaves[:min(len(leaves), maxPaths)] {
		paths = append(paths, pathText(leaf))
	}
	return paths, int32(len(leaves) - len(paths))
}

// leavesOf returns the leaves of a set, sorted by their text.
func leavesOf(fields *Fields) []fieldpath.Path {
	if fields == nil {
		return nil
	}
	var leaves []fieldpath.Path
	fields.Leaves().Iterate(func(path fieldpath.Path) { leaves = append(leaves, path.Copy()) })
	slices.SortFunc(leaves, func(a, b fieldpath.Path) int { return cmp.Compare(pathText(a), pathText(b)) })
	return leaves
}

// pathText returns a path as a status shows it.
func pathText(path fieldpath.Path) string { return strings.TrimPrefix(path.String(), ".") }

// changes returns the desired and the observed value of each field. A change names its
// manager if that is not the given one.
func changes(intent *unstructured.Unstructured, live metav1.Object, fields *Fields, rekeyed []RekeyedItem, manager string) []v1alpha1.FieldChange {
	liveContent, ok := content(live)
	if !ok {
		return nil
	}
	var intentContent any
	if intent != nil {
		intentContent = intent.Object
	}
	var all []v1alpha1.FieldChange
	for _, path := range leavesOf(fields) {
		if len(all) == maxPaths {
			break
		}
		desired, _ := valueAt(intentContent, path)
		observed, _ := valueAt(liveContent, livePath(rekeyed, path))
		change := v1alpha1.FieldChange{Path: pathText(path), Was: valueText(desired), Is: valueText(observed)}
		if other := Attribute(live, NewFields(livePath(rekeyed, path))).Manager; other != manager {
			change.Manager = other
		}
		if change.Was != "" || change.Is != "" {
			all = append(all, change)
		}
	}
	return all
}

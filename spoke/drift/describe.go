package drift

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	// maxPaths bounds the paths that a status shows; a label selector gone wrong can
	// touch hundreds.
	maxPaths = 10
	// maxValue bounds a value in a status, in characters.
	maxValue = 100
)

// Describe says how a live object differs in the given fields from the intent, and
// who made it so: who did so last, and of each single field whether it was somebody else. It reads and compares the values of the fields only.
func Describe(object string, intent *unstructured.Unstructured, live metav1.Object, fields *Fields) v1alpha1.DriftFinding {
	if intent != nil {
		fields = ChangedFields(intent, live, fields)
	}
	moved := RekeyedItems(intent, live, fields)
	who := Attribute(live, holding(moved, fields))
	found := v1alpha1.DriftFinding{Object: object, Manager: who.Manager, Operation: who.Operation}
	found.Fields, found.OmittedFields = Paths(fields)
	if !who.At.IsZero() {
		found.ChangedAt = &metav1.Time{Time: who.At}
	}
	found.Changes = changes(intent, live, fields, moved, who.Manager)
	return found
}

// holding are the given fields where the live object has them.
func holding(moved []RekeyedItem, fields *Fields) *Fields {
	if len(moved) == 0 {
		return fields
	}
	there := NewFields()
	fields.Iterate(func(p fieldpath.Path) { there.Insert(whereabouts(moved, p).Copy()) })
	return there
}

// ChangedFields are those of the fields that have another value in the live object than in
// the intent. A field that was changed and changed back by hand is as it shall be, and
// only held by somebody else.
func ChangedFields(intent *unstructured.Unstructured, live metav1.Object, fields *Fields) *Fields {
	is, ok := content(live)
	if fields == nil || !ok {
		return fields
	}
	differing, moved := NewFields(), RekeyedItems(intent, live, fields)
	fields.Leaves().Iterate(func(p fieldpath.Path) {
		before, wanted := at(intent.Object, p)
		after, found := at(is, whereabouts(moved, p))
		if !wanted || !found || !value.Equals(value.NewValueInterface(before), value.NewValueInterface(after)) {
			differing.Insert(p.Copy())
		}
	})
	return differing
}

// Paths returns the paths of fields, sorted, and how many it omits beyond the first ten.
func Paths(fields *Fields) (paths []string, omitted int32) {
	leaves := leavesOf(fields)
	for _, p := range leaves[:min(len(leaves), maxPaths)] {
		paths = append(paths, text(p))
	}
	return paths, int32(len(leaves) - len(paths))
}

// leavesOf a set, sorted by their text.
func leavesOf(fields *Fields) []fieldpath.Path {
	if fields == nil {
		return nil
	}
	var leaves []fieldpath.Path
	fields.Leaves().Iterate(func(p fieldpath.Path) { leaves = append(leaves, p.Copy()) })
	slices.SortFunc(leaves, func(a, b fieldpath.Path) int { return cmp.Compare(text(a), text(b)) })
	return leaves
}

// text of a path, as a status shows it.
func text(p fieldpath.Path) string { return strings.TrimPrefix(p.String(), ".") }

// changes are the values of single fields, and who changed those that the manager did not.
func changes(intent *unstructured.Unstructured, live metav1.Object, fields *Fields, moved []RekeyedItem, manager string) []v1alpha1.FieldChange {
	is, ok := content(live)
	if !ok {
		return nil
	}
	var was any
	if intent != nil {
		was = intent.Object
	}
	var found []v1alpha1.FieldChange
	for _, p := range leavesOf(fields) {
		if len(found) == maxPaths {
			break
		}
		before, _ := at(was, p)
		after, _ := at(is, whereabouts(moved, p))
		change := v1alpha1.FieldChange{Path: text(p), Was: show(before), Is: show(after)}
		if other := Attribute(live, NewFields(whereabouts(moved, p))).Manager; other != manager {
			change.Manager = other
		}
		if change.Was != "" || change.Is != "" {
			found = append(found, change)
		}
	}
	return found
}

// content of an object as JSON would hold it, whatever its Go type.
func content(object metav1.Object) (map[string]any, bool) {
	switch o := object.(type) {
	case nil:
		return nil, false
	case *unstructured.Unstructured:
		return o.Object, true
	case runtime.Object:
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		return u, err == nil
	}
	return nil, false
}

// at finds the value of a path.
func at(in any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		found := false
		switch holder := in.(type) {
		case map[string]any:
			if e.FieldName != nil {
				in, found = holder[*e.FieldName]
			}
		case []any:
			in, found = item(holder, e)
		}
		if !found {
			return nil, false
		}
	}
	return in, true
}

// item of a list: by its keys, by its value in a set, or by its place.
func item(list []any, e fieldpath.PathElement) (any, bool) {
	if e.Index != nil {
		if *e.Index >= 0 && *e.Index < len(list) {
			return list[*e.Index], true
		}
		return nil, false
	}
	for _, candidate := range list {
		if e.Value != nil && value.Equals(*e.Value, value.NewValueInterface(candidate)) || e.Key != nil && hasKey(candidate, *e.Key) {
			return candidate, true
		}
	}
	return nil, false
}

func hasKey(candidate any, key value.FieldList) bool {
	fields, ok := candidate.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range key {
		is, there := fields[k.Name]
		if !there || !value.Equals(k.Value, value.NewValueInterface(is)) {
			return false
		}
	}
	return true
}

// show is a value as JSON, cut; nothing for what is not there.
func show(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	shown := []rune(string(raw))
	if len(shown) > maxValue {
		return string(shown[:maxValue-1]) + "…"
	}
	return string(shown)
}

package drift

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// maxValue limits a value in a status, in characters.
const maxValue = 100

// content returns an object of any Go type as the maps and lists of its JSON form.
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

// valueAt returns the value at a path.
func valueAt(in any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		found := false
		switch container := in.(type) {
		case map[string]any:
			if e.FieldName != nil {
				in, found = container[*e.FieldName]
			}
		case []any:
			in, found = itemAt(container, e)
		}
		if !found {
			return nil, false
		}
	}
	return in, true
}

// itemAt returns the item of a list with the keys, the value or the index of a path element.
func itemAt(list []any, e fieldpath.PathElement) (any, bool) {
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
		live, found := fields[k.Name]
		if !found || !value.Equals(k.Value, value.NewValueInterface(live)) {
			return false
		}
	}
	return true
}

// valueText returns a value as JSON, cut to maxValue. It is empty for an absent value.
func valueText(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	text := []rune(string(raw))
	if len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return string(text)
}

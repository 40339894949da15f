package drift

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Crowding are what others put right beside the missing fields of ours, such as another
// handler of a probe, or minAvailable beside maxUnavailable: an API server may refuse
// both together.
func Crowding(wanted, missing *Fields, live metav1.Object) *Fields {
	found := NewFields()
	is, ok := content(live)
	if !ok || missing == nil {
		return found
	}
	var beside []fieldpath.Path
	missing.Iterate(func(p fieldpath.Path) {
		// Of what is gone as a whole, the top counts.
		n := 1
		for n < len(p) {
			if _, there := at(is, p[:n]); !there {
				break
			}
			n++
		}
		if n > 1 {
			beside = append(beside, p[:n-1].Copy())
		}
	})
	entries := live.GetManagedFields()
	for i := range entries {
		if isOurs(&entries[i]) || entries[i].Subresource != "" {
			continue
		}
		fieldsOf(&entries[i]).Iterate(func(p fieldpath.Path) {
			for _, holder := range beside {
				if n := len(holder); len(p) > n && p[:n].Equals(holder) && !wanted.Has(p[:n+1]) && under(wanted, p[:n+1]).Empty() {
					found.Insert(p[:n+1].Copy())
				}
			}
		})
	}
	return found
}

// SpecWithout is spec of a live object without the given fields and with all that the
// intent wants.
func SpecWithout(t Typer, intent *unstructured.Unstructured, live metav1.Object, fields *Fields) (map[string]any, error) {
	whole, err := liveWithout(t, intent.GroupVersionKind(), live, fields)
	if err != nil {
		return nil, err
	}
	left, err := t.ObjectToTyped(whole)
	if err != nil {
		return nil, fmt.Errorf("read %s %s by its schema: %w", intent.GetKind(), intent.GetName(), err)
	}
	ours, err := t.ObjectToTyped(intent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s by its schema: %w", intent.GetKind(), intent.GetName(), err)
	}
	merged, err := left.Merge(ours)
	if err != nil {
		return nil, fmt.Errorf("merge %s %s: %w", intent.GetKind(), intent.GetName(), err)
	}
	object, _ := merged.AsValue().Unstructured().(map[string]any)
	spec, found, err := unstructured.NestedMap(object, "spec")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %s has no spec: %w", intent.GetKind(), intent.GetName(), err)
	}
	return spec, nil
}

// liveWithout is a copy of a live object without the given fields.
func liveWithout(t Typer, kind schema.GroupVersionKind, live metav1.Object, fields *Fields) (*unstructured.Unstructured, error) {
	object, ok := content(live)
	if !ok {
		return nil, fmt.Errorf("read %s %s: %T is no object of an API", kind.Kind, live.GetName(), live)
	}
	whole := (&unstructured.Unstructured{Object: object}).DeepCopy()
	whole.SetGroupVersionKind(kind)
	return Without(t, whole, fields)
}

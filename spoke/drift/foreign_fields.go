package drift

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Remover is the field manager that removes foreign fields. It differs from the manager that
// applies. Fields under its name do not belong to the hub: they are defaults of the API
// server, or a webhook added them to the removal.
const Remover = v1alpha1.FieldManager + "-remover"

var (
	templatePath = fieldpath.MakePathOrDie("spec", "template")
	// restartedAtPath is the annotation of kubectl rollout restart. It requests a restart, so
	// it is never foreign.
	restartedAtPath = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
)

// ForeignFields returns the fields below spec.template of a StatefulSet that other managers
// own and the intent does not contain. It returns nil if the policy keeps them. An added
// list item, such as a container, counts as one field.
func (p *Policy) ForeignFields(kind string, intentFields *Fields, live metav1.Object) *Fields {
	if kind != "StatefulSet" || p.Foreign == "" || p.Foreign == v1alpha1.ForeignKeep {
		return nil
	}
	entries := live.GetManagedFields()
	own := intentFields.Union(ownedFields(entries))
	others := make([]*Fields, len(entries))
	for i := range entries {
		if isOwn(&entries[i]) || entries[i].Subresource != "" {
			others[i] = NewFields()
		} else {
			others[i] = fieldsOf(&entries[i])
		}
	}
	foreign := NewFields()
	for i := range entries {
		entry := &entries[i]
		subtree(others[i], templatePath).Iterate(func(rest fieldpath.Path) {
			field := append(templatePath.Copy(), rest...)
			isItem := field[len(field)-1].FieldName == nil
			switch {
			case own.Has(field) || !subtree(own, field).Empty():
			case field.Equals(restartedAtPath), p.ignores(kind, entry.Manager, field):
			case !isItem && anySubtree(others, field):
				// The field is a container of fields, which are examined one by one.
			case entry.Manager == Remover && !isItem && !isMapEntry(field):
				// The API server set its default when the hub removed the field.
			default:
				foreign.Insert(field)
			}
		})
	}
	return outermost(foreign)
}

// subtree returns the part of a set below a path, relative to the path.
func subtree(set *Fields, path fieldpath.Path) *Fields {
	for _, e := range path {
		set = set.WithPrefix(e)
	}
	return set
}

func anySubtree(sets []*Fields, path fieldpath.Path) bool {
	for _, set := range sets {
		if !subtree(set, path).Empty() {
			return true
		}
	}
	return false
}

// isMapEntry reports whether a field below spec.template is an entry of a map, such as an
// annotation. The API server has no default for one.
func isMapEntry(field fieldpath.Path) bool {
	return len(field) > 3 && *field[2].FieldName == "metadata"
}

// outermost returns the set without the fields of list items that are themselves in the set.
func outermost(set *Fields) *Fields {
	fields := NewFields()
	set.Iterate(func(field fieldpath.Path) {
		for n := 1; n < len(field); n++ {
			if field[n-1].FieldName == nil && set.Has(field[:n]) {
				return
			}
		}
		fields.Insert(field.Copy())
	})
	return fields
}

// RestoredDefaults returns those of the removed fields that the answer to the removal still
// contains because the API server sets a default. They cannot be removed.
func RestoredDefaults(removed *Fields, p *Policy, intentFields *Fields, answer metav1.Object) *Fields {
	restored := NewFields()
	remaining := p.ForeignFields("StatefulSet", intentFields, answer)
	if remaining == nil {
		return restored
	}
	remaining.Intersection(removed).Iterate(func(field fieldpath.Path) {
		if field[len(field)-1].FieldName != nil && !isMapEntry(field) {
			restored.Insert(field.Copy())
		}
	})
	return restored
}

// PruneTemplate returns spec.template of a live object without the given fields.
func PruneTemplate(t Typer, kind schema.GroupVersionKind, live metav1.Object, fields *Fields) (map[string]any, error) {
	liveContent, ok := content(live)
	if !ok {
		return nil, fmt.Errorf("read %s %s: %T is not an API object", kind.Kind, live.GetName(), live)
	}
	object := (&unstructured.Unstructured{Object: liveContent}).DeepCopy()
	object.SetGroupVersionKind(kind)
	pruned, err := RemoveFields(t, object, fields)
	if err != nil {
		return nil, err
	}
	template, found, err := unstructured.NestedMap(pruned.Object, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %s has no spec.template: %w", kind.Kind, live.GetName(), err)
	}
	return template, nil
}

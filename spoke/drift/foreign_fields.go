package drift

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Remover is the field manager that removes foreign fields. It is another one than
// the one that applies: what is found under its name was put there in answer to the
// removal, by the API server or a webhook, and is not ours.
const Remover = v1alpha1.FieldManager + "-remover"

// restartedAt is what kubectl rollout restart sets: a wish for a restart, not a field
// of anybody.
var restartedAt = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")

// ForeignFields are what others hold below spec.template of a StatefulSet and is not
// part of the intent; nil where the policy keeps it. A list item that somebody added,
// such as a container, is one field, whatever it holds.
func (p *Policy) ForeignFields(kind string, wanted *Fields, live metav1.Object) *Fields {
	if kind != "StatefulSet" || p.Foreign == "" || p.Foreign == v1alpha1.ForeignKeep {
		return nil
	}
	entries := live.GetManagedFields()
	kept := wanted.Union(ownedBy(entries))
	all := make([]*Fields, len(entries))
	for i := range entries {
		if isOurs(&entries[i]) || entries[i].Subresource != "" {
			all[i] = NewFields()
		} else {
			all[i] = fieldsOf(&entries[i])
		}
	}
	found := NewFields()
	for i := range entries {
		e := &entries[i]
		below(all[i], "spec", "template").Iterate(func(rest fieldpath.Path) {
			field := append(fieldpath.MakePathOrDie("spec", "template"), rest...)
			isItem := field[len(field)-1].FieldName == nil
			switch {
			case kept.Has(field) || !under(kept, field).Empty():
			case field.Equals(restartedAt), p.ignores(kind, e.Manager, field):
			case !isItem && anyUnder(all, field):
				// It only holds fields, each of which is looked at itself.
			case e.Manager == Remover && !isItem && !keyed(field):
				// What the API server put there when we removed it: its default.
			default:
				found.Insert(field)
			}
		})
	}
	return roots(found)
}

// below is the part of a set under some field names.
func below(set *Fields, names ...string) *Fields {
	for _, name := range names {
		set = set.WithPrefix(fieldpath.PathElement{FieldName: &name})
	}
	return set
}

func under(set *Fields, path fieldpath.Path) *Fields {
	for _, e := range path {
		set = set.WithPrefix(e)
	}
	return set
}

func anyUnder(sets []*Fields, path fieldpath.Path) bool {
	for _, set := range sets {
		if !under(set, path).Empty() {
			return true
		}
	}
	return false
}

// keyed says that a field is an entry of a map, such as an annotation, for which no
// API server has a default.
func keyed(field fieldpath.Path) bool {
	return len(field) > 3 && *field[2].FieldName == "metadata"
}

// roots leaves out what lies within a list item of the set.
func roots(set *Fields) *Fields {
	out := NewFields()
	set.Iterate(func(field fieldpath.Path) {
		for n := 1; n < len(field); n++ {
			if field[n-1].FieldName == nil && set.Has(field[:n]) {
				return
			}
		}
		out.Insert(field.Copy())
	})
	return out
}

// RestoredDefaults are those of the fields that an API server gives a default, and that are
// there again straight after they were removed. They can't be had away.
func RestoredDefaults(removed *Fields, p *Policy, wanted *Fields, answer metav1.Object) *Fields {
	settled := NewFields()
	left := p.ForeignFields("StatefulSet", wanted, answer)
	if left == nil {
		return settled
	}
	left.Intersection(removed).Iterate(func(field fieldpath.Path) {
		if field[len(field)-1].FieldName != nil && !keyed(field) {
			settled.Insert(field.Copy())
		}
	})
	return settled
}

// PruneTemplate is spec.template of a live object without the given fields.
func PruneTemplate(t Typer, kind schema.GroupVersionKind, live metav1.Object, fields *Fields) (map[string]any, error) {
	object, ok := content(live)
	if !ok {
		return nil, fmt.Errorf("read %s %s: %T is no object of an API", kind.Kind, live.GetName(), live)
	}
	whole := (&unstructured.Unstructured{Object: object}).DeepCopy()
	whole.SetGroupVersionKind(kind)
	left, err := RemoveFields(t, whole, fields)
	if err != nil {
		return nil, err
	}
	template, found, err := unstructured.NestedMap(left.Object, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %s has no spec.template: %w", kind.Kind, live.GetName(), err)
	}
	return template, nil
}

package drift

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Moved is an item of a list of which somebody changed the key, such as the number of a
// Service's port. To the API server ours is gone then and theirs is a new one; it refuses
// ours beside theirs, because both have one name.
type Moved struct {
	// Pointer to their item in the live object, a JSON pointer (RFC 6901), and Item, ours.
	Pointer string
	Item    any

	ours, theirs fieldpath.Path
}

// MovedItems are those among the given fields of the intent that the live object holds
// under another key.
func MovedItems(intent *unstructured.Unstructured, live metav1.Object, fields *Fields) []Moved {
	if intent == nil || fields == nil {
		return nil
	}
	items := itemsOf(fields)
	if len(items) == 0 {
		return nil
	}
	is, ok := content(live)
	if !ok {
		return nil
	}
	var moved []Moved
	for _, ours := range items {
		if m := movedTo(intent, live, is, ours); m != nil {
			moved = append(moved, *m)
		}
	}
	return moved
}

// itemsOf a set are the list items that hold its fields, each once.
func itemsOf(fields *Fields) (items []fieldpath.Path) {
	seen := NewFields()
	fields.Iterate(func(p fieldpath.Path) {
		for n := range p {
			if item := p[:n+1]; n > 0 && p[n].Key != nil && !seen.Has(item) {
				items = append(items, item.Copy())
				seen.Insert(item.Copy())
			}
		}
	})
	return items
}

// movedTo finds an item of ours under another key; nil if it is there, or is just gone.
func movedTo(intent *unstructured.Unstructured, live metav1.Object, is map[string]any, ours fieldpath.Path) *Moved {
	last := len(ours) - 1
	item, _ := at(intent.Object, ours)
	found, _ := at(is, ours[:last])
	list, _ := found.([]any)
	name := nameOf(item)
	if name == "" || slices.ContainsFunc(list, func(other any) bool { return hasKey(other, *ours[last].Key) }) {
		return nil
	}
	for i, other := range list {
		key := keyLike(*ours[last].Key, other)
		if key == nil || nameOf(other) != name {
			continue
		}
		theirs := append(ours[:last].Copy(), fieldpath.PathElement{Key: key})
		if _, wanted := at(intent.Object, theirs); !wanted && !onlyOurs(live, theirs) {
			return &Moved{Pointer: pointer(is, ours[:last]) + "/" + strconv.Itoa(i), Item: item, ours: ours, theirs: theirs}
		}
	}
	return nil
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// keyLike is the key of an item, of the same fields as another one; nil if it lacks one
// of them, or is told apart by its name.
func keyLike(other value.FieldList, item any) *value.FieldList {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	key := make(value.FieldList, 0, len(other))
	for _, field := range other {
		v, there := fields[field.Name]
		if !there || field.Name == "name" {
			return nil
		}
		key = append(key, value.Field{Name: field.Name, Value: value.NewValueInterface(v)})
	}
	return &key
}

// onlyOurs says that nobody else holds an item of ours: an apply that lacks it removes it.
func onlyOurs(live metav1.Object, p fieldpath.Path) bool {
	entries := live.GetManagedFields()
	if !ownedBy(entries).Has(p) {
		return false
	}
	for i := range entries {
		if e := &entries[i]; !isOurs(e) && fieldsOf(e).Has(p) {
			return false
		}
	}
	return true
}

// pointer to a path that is there.
func pointer(in any, p fieldpath.Path) string {
	var out strings.Builder
	for n, e := range p {
		out.WriteByte('/')
		if e.FieldName != nil {
			out.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(*e.FieldName))
			continue
		}
		list, _ := at(in, p[:n])
		items, _ := list.([]any)
		for i := range items {
			if _, found := item(items[i:i+1], e); found {
				out.WriteString(strconv.Itoa(i))
				break
			}
		}
	}
	return out.String()
}

// whereabouts is where the live object has a field: within their item, if ours was moved.
func whereabouts(moved []Moved, p fieldpath.Path) fieldpath.Path {
	for i := range moved {
		m := &moved[i]
		if len(p) >= len(m.ours) && p[:len(m.ours)].Equals(m.ours) {
			return append(m.theirs.Copy(), p[len(m.ours):]...)
		}
	}
	return p
}

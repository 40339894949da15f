package drift

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// RekeyedItem is an item of a list of which somebody changed the key, such as the number of a
// Service's port. To the API server ours is gone then and theirs is a new one; it refuses
// ours beside theirs, because both have one name.
type RekeyedItem struct {
	// Edits make their item ours; what they added to it stays.
	Edits []Edit

	ours, theirs fieldpath.Path
}

// RekeyedItems are those among the given fields of the intent that the live object holds
// under another key.
func RekeyedItems(intent *unstructured.Unstructured, live metav1.Object, fields *Fields) []RekeyedItem {
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
	var moved []RekeyedItem
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
func movedTo(intent *unstructured.Unstructured, live metav1.Object, is map[string]any, ours fieldpath.Path) *RekeyedItem {
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
			return &RekeyedItem{Edits: edits(pointer(is, ours[:last])+"/"+strconv.Itoa(i), item, other), ours: ours, theirs: theirs}
		}
	}
	return nil
}

// edits make an item what it is to be, in the order of its fields.
func edits(pointer string, wanted, is any) (all []Edit) {
	want, _ := wanted.(map[string]any)
	have, _ := is.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !value.Equals(value.NewValueInterface(want[name]), value.NewValueInterface(have[name])) {
			all = append(all, Edit{Pointer: pointer + "/" + name, Value: want[name]})
		}
	}
	return all
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// uniqueName are the fields by which lists tell items apart that have a name besides, and
// no two the same. Others, such as the mounts of volumes, may name one thing twice.
var uniqueName = []string{"port", "containerPort", "protocol"}

// keyLike is the key of an item, of the same fields as another one; nil if it lacks one
// of them, or its list is none in which names are unique.
func keyLike(other value.FieldList, item any) *value.FieldList {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	key := make(value.FieldList, 0, len(other))
	for _, field := range other {
		v, there := fields[field.Name]
		if !there || !slices.Contains(uniqueName, field.Name) {
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

// pointer to a path that is there, or to where its last element would be: an item comes
// at the end of its list.
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
		at := slices.IndexFunc(items, func(candidate any) bool {
			_, found := item([]any{candidate}, e)
			return found
		})
		if at < 0 {
			out.WriteByte('-')
		} else {
			out.WriteString(strconv.Itoa(at))
		}
	}
	return out.String()
}

// whereabouts is where the live object has a field: within their item, if ours was moved.
func whereabouts(moved []RekeyedItem, p fieldpath.Path) fieldpath.Path {
	for i := range moved {
		m := &moved[i]
		if len(p) >= len(m.ours) && p[:len(m.ours)].Equals(m.ours) {
			return append(m.theirs.Copy(), p[len(m.ours):]...)
		}
	}
	return p
}

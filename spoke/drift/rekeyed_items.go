package drift

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// RekeyedItem is a list item of the intent whose key another client changed, such as the
// number of a Service's port. The API server rejects an apply of the intent: the list would
// contain two items with one name.
type RekeyedItem struct {
	// Edits restore the desired fields of the live item. Its other fields stay.
	Edits []Edit

	desired, live fieldpath.Path
}

// RekeyedItems returns the list items of the given fields that the live object contains
// under another key.
func RekeyedItems(intent *unstructured.Unstructured, live metav1.Object, fields *Fields) []RekeyedItem {
	if intent == nil || fields == nil {
		return nil
	}
	items := itemPaths(fields)
	if len(items) == 0 {
		return nil
	}
	liveContent, ok := content(live)
	if !ok {
		return nil
	}
	var rekeyed []RekeyedItem
	for _, path := range items {
		if item := rekeyedItem(intent, live, liveContent, path); item != nil {
			rekeyed = append(rekeyed, *item)
		}
	}
	return rekeyed
}

// itemPaths returns the paths of the list items that contain any of the fields.
func itemPaths(fields *Fields) (items []fieldpath.Path) {
	seen := NewFields()
	fields.Iterate(func(path fieldpath.Path) {
		for n := range path {
			if item := path[:n+1]; n > 0 && path[n].Key != nil && !seen.Has(item) {
				items = append(items, item.Copy())
				seen.Insert(item.Copy())
			}
		}
	})
	return items
}

// rekeyedItem returns the live item with the name of a desired one and another key. It
// returns nil if the live list contains the desired key, or no such item.
func rekeyedItem(intent *unstructured.Unstructured, live metav1.Object, liveContent map[string]any, path fieldpath.Path) *RekeyedItem {
	last := len(path) - 1
	desired, _ := valueAt(intent.Object, path)
	value, _ := valueAt(liveContent, path[:last])
	list, _ := value.([]any)
	name := nameOf(desired)
	if name == "" || slices.ContainsFunc(list, func(item any) bool { return hasKey(item, *path[last].Key) }) {
		return nil
	}
	for i, item := range list {
		key := uniqueKey(*path[last].Key, item)
		if key == nil || nameOf(item) != name {
			continue
		}
		livePath := append(path[:last].Copy(), fieldpath.PathElement{Key: key})
		// An apply removes an item that only the hub owns and the intent no longer contains.
		if _, inIntent := valueAt(intent.Object, livePath); !inIntent && !ownedByHubOnly(live, livePath) {
			edits := itemEdits(pointer(liveContent, path[:last])+"/"+strconv.Itoa(i), desired, item)
			return &RekeyedItem{Edits: edits, desired: path, live: livePath}
		}
	}
	return nil
}

// itemEdits returns the edits that restore the desired fields of an item, sorted by field.
func itemEdits(pointer string, desired, live any) (edits []Edit) {
	desiredFields, _ := desired.(map[string]any)
	liveFields, _ := live.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(desiredFields)) {
		if !value.Equals(value.NewValueInterface(desiredFields[name]), value.NewValueInterface(liveFields[name])) {
			edits = append(edits, Edit{Pointer: pointer + "/" + name, Value: desiredFields[name]})
		}
	}
	return edits
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// uniqueNameKeys are the key fields of lists whose items also have a unique name. In other
// lists, such as volume mounts, two items can have one name.
var uniqueNameKeys = []string{"port", "containerPort", "protocol"}

// uniqueKey returns the key of an item, made of the fields of another item's key. It returns
// nil if the item lacks one of the fields, or if names are not unique in its list.
func uniqueKey(other value.FieldList, item any) *value.FieldList {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	key := make(value.FieldList, 0, len(other))
	for _, field := range other {
		v, found := fields[field.Name]
		if !found || !slices.Contains(uniqueNameKeys, field.Name) {
			return nil
		}
		key = append(key, value.Field{Name: field.Name, Value: value.NewValueInterface(v)})
	}
	return &key
}

// ownedByHubOnly reports whether the hub owns a field and no other manager does.
func ownedByHubOnly(live metav1.Object, path fieldpath.Path) bool {
	entries := live.GetManagedFields()
	if !ownedFields(entries).Has(path) {
		return false
	}
	for i := range entries {
		if entry := &entries[i]; !isOwn(entry) && fieldsOf(entry).Has(path) {
			return false
		}
	}
	return true
}

// livePath returns the path of a field in the live object, whose list item can be rekeyed.
func livePath(rekeyed []RekeyedItem, path fieldpath.Path) fieldpath.Path {
	for i := range rekeyed {
		item := &rekeyed[i]
		if n := len(item.desired); len(path) >= n && path[:n].Equals(item.desired) {
			return append(item.live.Copy(), path[n:]...)
		}
	}
	return path
}

// livePaths returns the paths of fields in the live object.
func livePaths(rekeyed []RekeyedItem, fields *Fields) *Fields {
	if len(rekeyed) == 0 {
		return fields
	}
	paths := NewFields()
	fields.Iterate(func(path fieldpath.Path) { paths.Insert(livePath(rekeyed, path).Copy()) })
	return paths
}

package drift

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Patch returns the JSON merge patch that corrects the drifted fields of the object with this
// UID. It returns nil unless they are a few scalar values of the spec; the whole intent must
// then be applied. For an API server, an apply costs half as much again as such a patch.
//
// The API server records a patched field in an entry of the hub with the operation Update,
// in addition to the entry of its applies; see HasPatchedFields.
func Patch(intent *unstructured.Unstructured, uid types.UID, drifted *Fields) []byte {
	if drifted == nil || drifted.Size() > maxPaths {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": string(uid)}}
	patchable := true
	drifted.Iterate(func(path fieldpath.Path) {
		fields := names(path)
		if len(fields) < 2 || fields[0] != "spec" {
			patchable = false
			return
		}
		value, found, err := unstructured.NestedFieldNoCopy(intent.Object, fields...)
		switch value.(type) {
		case string, bool, int64, float64:
			patchable = patchable && found && err == nil && unstructured.SetNestedField(patch, value, fields...) == nil
		default:
			patchable = false
		}
	})
	if !patchable {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	return raw
}

// names returns the field names of a path. It returns nil for a path through a list.
func names(path fieldpath.Path) []string {
	fields := make([]string, 0, len(path))
	for _, element := range path {
		if element.FieldName == nil {
			return nil
		}
		fields = append(fields, *element.FieldName)
	}
	return fields
}

// HasPatchedFields reports whether an object has fields that Patch corrected. An apply does
// not remove such a field when the intent no longer contains it. They must first be moved
// to the entry of the hub's applies.
func HasPatchedFields(live metav1.Object) bool {
	for _, entry := range live.GetManagedFields() {
		if isOwn(&entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			return true
		}
	}
	return false
}

package drift

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Patch gives the JSON merge patch that puts the missing fields back on the object
// with this UID, where they are few single values of its spec; otherwise nothing,
// and the whole intent has to be applied. It is the short way for the commonest
// drift: a server-side apply of the whole intent costs an API server half as much
// again as such a patch.
//
// A patched field is held under our name by an entry with the operation Update,
// beside that of our applies; see Patched.
func Patch(intent *unstructured.Unstructured, uid types.UID, missing *Fields) []byte {
	if missing == nil || missing.Size() > maxPaths {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": string(uid)}}
	possible := true
	missing.Iterate(func(path fieldpath.Path) {
		fields := names(path)
		if len(fields) < 2 || fields[0] != "spec" {
			possible = false
			return
		}
		value, found, err := unstructured.NestedFieldNoCopy(intent.Object, fields...)
		switch value.(type) {
		case string, bool, int64, float64:
			possible = possible && found && err == nil && unstructured.SetNestedField(patch, value, fields...) == nil
		default:
			possible = false
		}
	})
	if !possible {
		return nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	return body
}

// names of a path that leads through named fields only; nil for one that goes
// through a list.
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

// HasPatchedFields says whether an object holds fields under our name that were patched back.
// An apply does not let go of those, so they must be moved to the entry of our
// applies before an intent that may lack them is applied.
func HasPatchedFields(live metav1.Object) bool {
	for _, e := range live.GetManagedFields() {
		if e.Manager == v1alpha1.FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" {
			return true
		}
	}
	return false
}

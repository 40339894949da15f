package drift

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Typer reads an object by the schema of its kind. applyconfigurations.NewTypeConverter
// returns one.
type Typer interface {
	ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error)
}

// Fields is a set of field paths.
type Fields = fieldpath.Set

// NewFields returns the set of the given paths.
func NewFields(paths ...fieldpath.Path) *Fields { return fieldpath.NewSet(paths...) }

// neverOwned are the paths that the API server records for no manager.
var neverOwned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// IntentFields returns the fields that the API server records for the hub when it applies
// the intent.
func IntentFields(t Typer, intent *unstructured.Unstructured) (*Fields, error) {
	value, err := t.ObjectToTyped(intent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s by its schema: %w", intent.GetKind(), intent.GetName(), err)
	}
	set, err := value.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("fields of %s %s: %w", intent.GetKind(), intent.GetName(), err)
	}
	return set.Difference(neverOwned), nil
}

// UnownedFields returns the fields of the intent that the hub does not own in the live
// object. It is empty right after an apply.
func UnownedFields(intentFields *Fields, live metav1.Object) *Fields {
	return intentFields.Difference(ownedFields(live.GetManagedFields()))
}

// Owns reports whether the hub owns a field of the live object.
func Owns(live metav1.Object, path fieldpath.Path) bool {
	return ownedFields(live.GetManagedFields()).Has(path)
}

// OwnsAny reports whether the hub owns any field of the live object.
func OwnsAny(live metav1.Object) bool {
	entries := live.GetManagedFields()
	for i := range entries {
		if isOwn(&entries[i]) {
			return true
		}
	}
	return false
}

// ownedFields returns the fields that the hub owns. The set can be shared with other
// callers, which must not change it.
func ownedFields(entries []metav1.ManagedFieldsEntry) *Fields {
	var owned *Fields
	for i := range entries {
		switch {
		case !isOwn(&entries[i]):
		case owned == nil:
			owned = cachedFieldsOf(&entries[i])
		default:
			owned = owned.Union(cachedFieldsOf(&entries[i]))
		}
	}
	if owned == nil {
		return NewFields()
	}
	return owned
}

// parsedEntries caches the parsed entries of the hub. Caches of one shape have equal entries
// in all members, and parsing an entry costs more than the rest of Diff. A shape has about
// six entries, including those of drifted objects.
var parsedEntries = lru.New(512)

// cachedFieldsOf returns fieldsOf an entry of the hub.
func cachedFieldsOf(entry *metav1.ManagedFieldsEntry) *Fields {
	if entry.FieldsV1 == nil {
		return NewFields()
	}
	raw := entry.FieldsV1.GetRawString()
	if cached, ok := parsedEntries.Get(raw); ok {
		if set, ok := cached.(*Fields); ok {
			return set
		}
	}
	set := fieldsOf(entry)
	parsedEntries.Add(raw, set)
	return set
}

// isOwn reports whether an entry belongs to the hub.
func isOwn(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v1alpha1.FieldManager && entry.Subresource == ""
}

// fieldsOf parses an entry. An unreadable entry owns no field; at worst, the same intent is
// applied once more.
func fieldsOf(entry *metav1.ManagedFieldsEntry) *Fields {
	set := &Fields{}
	if entry.FieldsV1 == nil {
		return set
	}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return &Fields{}
	}
	return set
}

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

// Typer knows the schema of the kinds that are applied;
// applyconfigurations.NewTypeConverter gives one.
type Typer interface {
	ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error)
}

// Fields is a set of field paths that one manager owns.
type Fields = fieldpath.Set

// NewFields is the set of the given paths.
func NewFields(paths ...fieldpath.Path) *Fields { return fieldpath.NewSet(paths...) }

// Finding is what Diff found out about one live object. Who did it and which values
// were there are asked for afterwards, by Attribute and Describe: a repair does not wait
// for them.
type Finding struct {
	// IntentChanged: the intent is another one than was applied last.
	IntentChanged bool
	// Fields are the fields of the intent that we do not own any more; empty when
	// nothing drifted or when the intent changed.
	Fields *Fields
}

// Clean says that there is nothing to apply.
func (f Finding) Clean() bool { return !f.IntentChanged && f.Drifted() == 0 }

// Drifted is the number of fields that drifted.
func (f Finding) Drifted() int {
	if f.Fields == nil {
		return 0
	}
	return f.Fields.Size()
}

// IntentHashDrifted says that the mark is among what drifted by which a changed wish is told.
func (f Finding) IntentHashDrifted() bool { return f.Fields != nil && f.Fields.Has(intentMark) }

// IntentFields is the set of fields that the API server puts under our name when it
// applies the intent.
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

// neverOwned are the paths that the API server leaves out of every entry.
var neverOwned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// Diff compares what we want to own with what the live object says that we own.
// known are fields that were missing straight after our own last apply, or nil.
func Diff(wanted *Fields, hash string, live metav1.Object, known *Fields) Finding {
	owned := ownedBy(live.GetManagedFields())
	missing := wanted.Difference(owned)
	if known != nil {
		missing = missing.Difference(known)
	}
	if live.GetAnnotations()[v1alpha1.AnnotationIntent] != hash && owned.Has(intentMark) {
		// We still own the mark and it says something else: our wish changed.
		return Finding{IntentChanged: true}
	}
	if missing.Empty() {
		return Finding{}
	}
	return Finding{Fields: missing}
}

var intentMark = fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent)

// UnownedFields is what the live object lacks of what we want to own; straight after
// an apply it should be empty.
func UnownedFields(wanted *Fields, live metav1.Object) *Fields {
	return wanted.Difference(ownedBy(live.GetManagedFields()))
}

// ownedBy may give a set that is shared: it is not to be changed.
func ownedBy(entries []metav1.ManagedFieldsEntry) *Fields {
	var owned *Fields
	for i := range entries {
		switch {
		case !isOurs(&entries[i]):
		case owned == nil:
			owned = ourFields(&entries[i])
		default:
			owned = owned.Union(ourFields(&entries[i]))
		}
	}
	if owned == nil {
		return NewFields()
	}
	return owned
}

// ours holds entries of ours that were read: caches of one shape have the same ones in
// all members, and reading one costs more than all else that Diff does. A shape, such as
// one with storage, has about half a dozen, with those of objects that drifted.
var ours = lru.New(512)

// ourFields is fieldsOf an entry of ours.
func ourFields(e *metav1.ManagedFieldsEntry) *Fields {
	if e.FieldsV1 == nil {
		return NewFields()
	}
	raw := e.FieldsV1.GetRawString()
	if known, ok := ours.Get(raw); ok {
		if set, ok := known.(*Fields); ok {
			return set
		}
	}
	set := fieldsOf(e)
	ours.Add(raw, set)
	return set
}

func isOurs(e *metav1.ManagedFieldsEntry) bool {
	return e.Manager == v1alpha1.FieldManager && e.Subresource == ""
}

// fieldsOf reads an entry; one that can't be read owns nothing, which at worst
// applies the same intent once more.
func fieldsOf(e *metav1.ManagedFieldsEntry) *Fields {
	set := &Fields{}
	if e.FieldsV1 == nil {
		return set
	}
	if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return &Fields{}
	}
	return set
}

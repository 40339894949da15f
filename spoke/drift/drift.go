package drift

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Finding is the difference between an intent and one live object. It contains neither
// managers nor values: a correction must not wait for Attribute and Describe.
type Finding struct {
	// IntentChanged reports whether the intent differs from the one applied last.
	IntentChanged bool
	// Fields are the drifted fields: those of the intent that the hub no longer owns. They
	// are nil without drift, and after a change of the intent.
	Fields *Fields
}

// Clean reports whether there is nothing to apply.
func (f Finding) Clean() bool {
	return !f.IntentChanged && (f.Fields == nil || f.Fields.Size() == 0)
}

// IntentHashDrifted reports whether another client changed the annotation with the hash of
// the intent. A changed intent cannot be detected then.
func (f Finding) IntentHashDrifted() bool { return f.Fields != nil && f.Fields.Has(intentHashPath) }

var intentHashPath = fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent)

// Diff compares the fields of an intent with those that the hub owns in the live object.
// unrecorded are the fields that the hub's last apply did not record, or nil.
func Diff(intentFields *Fields, hash string, live metav1.Object, unrecorded *Fields) Finding {
	owned := ownedFields(live.GetManagedFields())
	// The hub wrote this hash itself, so the difference is a changed intent, not drift.
	if live.GetAnnotations()[v1alpha1.AnnotationIntent] != hash && owned.Has(intentHashPath) {
		return Finding{IntentChanged: true}
	}
	drifted := intentFields.Difference(owned)
	if unrecorded != nil {
		drifted = drifted.Difference(unrecorded)
	}
	if drifted.Empty() {
		return Finding{}
	}
	return Finding{Fields: drifted}
}

package drift

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unknown is the manager of a change that the API server keeps no trace of: a
// field that was removed, an object that was deleted.
const Unknown = "unknown"

// Attribution is who made a change, as the API server recorded it.
type Attribution struct {
	// Manager is a field manager, or Unknown.
	Manager string
	// Operation is Apply or Update, with the subresource where there was one, such as
	// Update/scale.
	Operation string
	At        time.Time
}

// Attribute finds the manager that took any of the fields last and is not us.
func Attribute(live metav1.Object, fields *Fields) Attribution {
	found := Attribution{Manager: Unknown}
	if live == nil || fields == nil {
		return found
	}
	entries := live.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if isOurs(e) || fieldsOf(e).Intersection(fields).Empty() {
			continue
		}
		var when time.Time
		if e.Time != nil {
			when = e.Time.Time
		}
		if found.Manager == Unknown || when.After(found.At) {
			found = Attribution{Manager: e.Manager, Operation: operation(e), At: when}
		}
	}
	return found
}

func operation(e *metav1.ManagedFieldsEntry) string {
	if e.Subresource == "" {
		return string(e.Operation)
	}
	return string(e.Operation) + "/" + e.Subresource
}

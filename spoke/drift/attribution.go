package drift

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unknown is the manager of a change that the API server does not record: a removed field,
// or a deleted object.
const Unknown = "unknown"

// Attribution is who made a change, as the API server recorded it.
type Attribution struct {
	// Manager is a field manager, or Unknown.
	Manager string
	// Operation is Apply or Update, with the subresource if there is one: Update/scale.
	Operation string
	// At is the time of the change. It is zero if the API server recorded none.
	At time.Time
}

// Attribute returns the latest manager, other than the hub, that owns any of the fields.
func Attribute(live metav1.Object, fields *Fields) Attribution {
	latest := Attribution{Manager: Unknown}
	if live == nil || fields == nil {
		return latest
	}
	entries := live.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if isOwn(entry) || fieldsOf(entry).Intersection(fields).Empty() {
			continue
		}
		at := timeOf(entry)
		if latest.Manager == Unknown || at.After(latest.At) {
			latest = Attribution{Manager: entry.Manager, Operation: operationOf(entry), At: at}
		}
	}
	return latest
}

func operationOf(entry *metav1.ManagedFieldsEntry) string {
	if entry.Subresource == "" {
		return string(entry.Operation)
	}
	return string(entry.Operation) + "/" + entry.Subresource
}

func timeOf(entry *metav1.ManagedFieldsEntry) time.Time {
	if entry.Time == nil {
		return time.Time{}
	}
	return entry.Time.Time
}

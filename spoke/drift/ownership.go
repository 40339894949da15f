package drift

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owns says whether a field of the live object is ours.
func Owns(live metav1.Object, path fieldpath.Path) bool {
	return ownedBy(live.GetManagedFields()).Has(path)
}

// OwnsAny says that the hub wrote some field of the live object.
func OwnsAny(live metav1.Object) bool {
	entries := live.GetManagedFields()
	for i := range entries {
		if isOurs(&entries[i]) {
			return true
		}
	}
	return false
}

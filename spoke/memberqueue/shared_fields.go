package memberqueue

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
)

// fieldSets holds field sets of managedFields by their JSON. Children of one shape have the
// same ones in all members.
var fieldSets = lru.New(1024)

// shareFieldSets lets the managedFields of an object refer to shared field sets. It is the
// transform of the member caches. Without it, they need some 3 kB per MemberCache.
func shareFieldSets(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		// A tombstone has no metadata.
		return object, nil
	}
	entries := accessor.GetManagedFields()
	for i := range entries {
		entries[i].FieldsV1 = sharedFieldSet(entries[i].FieldsV1)
	}
	return object, nil
}

func sharedFieldSet(set *metav1.FieldsV1) *metav1.FieldsV1 {
	if set == nil {
		return nil
	}
	raw := set.GetRawString()
	if known, ok := fieldSets.Get(raw); ok {
		if shared, ok := known.(*metav1.FieldsV1); ok {
			return shared
		}
	}
	fieldSets.Add(raw, set)
	return set
}

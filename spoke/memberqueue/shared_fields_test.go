package memberqueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShareFieldSets_SharesEqualSets(t *testing.T) {
	set := func(raw string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "sessions", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "reconcile-lab", FieldsV1: metav1.NewFieldsV1(raw)}, {Manager: "no fields"}}}}
	}
	share := func(object *appsv1.StatefulSet) *metav1.FieldsV1 {
		t.Helper()
		before := object.DeepCopy()
		got, err := shareFieldSets(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Errorf("changed (-before +after):\n%s", diff)
		}
		return object.ManagedFields[0].FieldsV1
	}
	one, equal, other := share(set(`{"f:spec":{}}`)), share(set(`{"f:spec":{}}`)), share(set(`{"f:status":{}}`))
	if one != equal || one == other {
		t.Errorf("%p, %p and %p: want one set for the first two", one, equal, other)
	}
}

func TestShareFieldSets_PassesOtherObjects(t *testing.T) {
	if got, err := shareFieldSets("tombstone"); err != nil || got != "tombstone" {
		t.Errorf("got %v, %v", got, err)
	}
}

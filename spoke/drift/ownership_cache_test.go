package drift_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// What we own of one object is read once for all that have the same entry, so no look at
// one may show in the next.
func TestALookAtOneObjectDoesNotShowInTheLookAtTheNext(t *testing.T) {
	intent, hash, wanted := statefulSet(t)
	replicas, management := path("spec", "replicas"), path("spec", "podManagementPolicy")
	before := holding(intent, without(wanted, replicas))
	lost := drift.UnownedFields(wanted, before)
	policy := drift.Policy{Foreign: v1alpha1.ForeignRemove}

	drift.Diff(wanted, hash, before, drift.NewFields(management))
	drift.UnownedFields(drift.NewFields(replicas, management), before)
	policy.ForeignFields("StatefulSet", wanted, before)
	drift.Owns(before, replicas)

	again := holding(intent, without(wanted, replicas))
	if now := drift.UnownedFields(wanted, again); !now.Equals(lost) || !now.Equals(drift.NewFields(replicas)) {
		t.Errorf("missing %s, before %s, want spec.replicas", now, lost)
	}
}

// holding is the object of an intent of which we own these fields.
func holding(intent *unstructured.Unstructured, owned *drift.Fields) *unstructured.Unstructured {
	live := intent.DeepCopy()
	patched := entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationUpdate, "", noon, drift.NewFields(path("spec", "podManagementPolicy")))
	live.SetManagedFields([]metav1.ManagedFieldsEntry{ours(owned), patched, by("mesh", noon, path("spec", "template", "spec", "hostNetwork"))})
	return live
}

// pathsOf returns the paths of a set that is small enough to be named in full.
func pathsOf(set *drift.Fields) []string {
	paths, _ := drift.Paths(set)
	return paths
}

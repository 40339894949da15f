package drift_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestUnownedFields_AreTheSameAfterOtherCalls(t *testing.T) {
	// Objects with an equal entry share one parsed set, which no call can change.
	intent, hash, intentFields := statefulSet(t)
	replicas, management := path("spec", "replicas"), path("spec", "podManagementPolicy")
	first := liveObject(intent, without(intentFields, replicas))
	unowned := drift.UnownedFields(intentFields, first)
	policy := drift.Policy{Foreign: v1alpha1.ForeignRemove}

	drift.Diff(intentFields, hash, first, drift.NewFields(management))
	drift.UnownedFields(drift.NewFields(replicas, management), first)
	policy.ForeignFields("StatefulSet", intentFields, first)
	drift.Owns(first, replicas)

	second := liveObject(intent, without(intentFields, replicas))
	if got := drift.UnownedFields(intentFields, second); !got.Equals(unowned) || !got.Equals(drift.NewFields(replicas)) {
		t.Errorf("unowned fields %s, before %s, want spec.replicas", got, unowned)
	}
}

// liveObject returns the live object of an intent of which the hub owns these fields.
func liveObject(intent *unstructured.Unstructured, owned *drift.Fields) *unstructured.Unstructured {
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

package drift_test

import (
	"testing"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestShared_ReturnsOneSetForEqualFields(t *testing.T) {
	replicas, image := path("spec", "replicas"), path("spec", "template", "spec", "image")
	first := drift.Shared(drift.NewFields(replicas, image))
	if second := drift.Shared(drift.NewFields(image, replicas)); second != first {
		t.Errorf("%p and %p, want one set", first, second)
	}
	if other := drift.Shared(drift.NewFields(replicas)); !other.Equals(drift.NewFields(replicas)) {
		t.Errorf("got %s, want spec.replicas", other)
	}
}

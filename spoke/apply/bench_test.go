package apply

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// BenchmarkDecide plans a cache with one drifted field.
func BenchmarkDecide(b *testing.B) {
	all, live := desired(b), Live{}
	for i := range all {
		u := applied(b, &all[i])
		if u.GetKind() == statefulSet {
			replicas := fieldpath.MakePathOrDie("spec", "replicas")
			u = ownedAlsoBy(b, applied(b, &all[i], replicas), "another-manager", replicas)
		}
		live[all[i].Key()] = typed(b, u)
	}
	memory := NewWriteCache().Memory(live)
	for b.Loop() {
		if plan := Decide(all, live, owner, memory); plan.Steps[1].Action != Correct {
			b.Fatal(plan)
		}
	}
}

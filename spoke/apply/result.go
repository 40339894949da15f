package apply

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Result is the outcome of one step or of one pruned target.
type Result struct {
	Key    Key
	Action Action
	// Change is what was written, or nil.
	Change *Change
	// Entry is the inventory entry of the child, or nil if it is absent or unknown.
	Entry *v1alpha1.InventoryEntry
	// Remaining is drift that was not corrected.
	Remaining []RemainingDrift
	// Deferred is true where the conflict breaker delayed the correction.
	Deferred bool
	// Unobserved is true where the state of the child is unknown: it was not read, the plan
	// ended before it, or its write failed.
	Unobserved bool
	// Failure is why the step failed, or nil.
	Failure *failure.Failure
	// Retained names the immutable fields that keep their live values, or is nil.
	Retained *failure.Failure
}

// Change is a write to one child.
type Change struct {
	Key    Key
	Action Action
	// Drift is the drift that the write corrected.
	Drift drift.Finding
	// Deleted is true where the write created a child that another client had deleted.
	Deleted bool
	// Reclaimed is true where the fields already had the desired values, and only their
	// field manager changed.
	Reclaimed bool
	// Foreign are the fields that were removed from the pod template.
	Foreign *drift.Fields
	// Intent is what was applied. Found is the object before the write, or nil.
	Intent *unstructured.Unstructured
	Found  metav1.Object
	// DoneAt is the time of the API server's answer. Took is the time from the event to it.
	DoneAt time.Time
	Took   time.Duration
}

// Drifted reports whether the change reverted a change of another client.
func (c *Change) Drifted() bool {
	return c.Deleted || c.Action == RemoveForeign || c.Action == Correct && !c.Reclaimed
}

// RemainingDrift is drift of one child that was not corrected.
type RemainingDrift struct {
	Key    Key
	Fields *drift.Fields
	// Deleted is true where the whole child is absent. Foreign is true for fields that other
	// field managers added to the pod template. Refused is true where the member refused the
	// correction.
	Deleted, Foreign, Refused bool
	Intent                    *unstructured.Unstructured
	Found                     metav1.Object
}

// Report summarizes the results of a plan.
type Report struct {
	// Changes are the writes, in the order of the plan.
	Changes []Change
	// Inventory lists the children that exist, and those that may exist.
	Inventory []v1alpha1.InventoryEntry
	// Remaining is the drift that was not corrected, in the order of the plan.
	Remaining []RemainingDrift
	// Deferred are the children whose correction the conflict breaker delayed.
	Deferred []Key
	// Unobserved are the children whose state is unknown.
	Unobserved []Key
	// Failures are the failures of children, in the order of the plan.
	Failures []*failure.Failure
	// Retained are the children that were applied except for immutable fields.
	Retained []*failure.Failure
}

// NewReport derives the report from the results of a plan. before is the inventory before
// the plan.
func NewReport(before []v1alpha1.InventoryEntry, results []Result) Report {
	report := Report{Inventory: inventoryAfter(before, results)}
	for i := range results {
		r := &results[i]
		if r.Change != nil {
			report.Changes = append(report.Changes, *r.Change)
		}
		report.Remaining = append(report.Remaining, r.Remaining...)
		if r.Deferred {
			report.Deferred = append(report.Deferred, r.Key)
		}
		if r.Unobserved {
			report.Unobserved = append(report.Unobserved, r.Key)
		}
		if r.Failure != nil {
			report.Failures = append(report.Failures, r.Failure)
		}
		if r.Retained != nil {
			report.Retained = append(report.Retained, r.Retained)
		}
	}
	return report
}

// PrimaryFailure returns the failure that a status shows: the first that a person must
// resolve, else the first.
func (r *Report) PrimaryFailure() *failure.Failure {
	var first *failure.Failure
	for _, f := range slices.Concat(r.Failures, r.Retained) {
		if f.Class != v1alpha1.ClassTransient {
			return f
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// inventoryAfter returns the entries of the results. After an incomplete plan, it also
// returns the earlier entries that no result replaced: a child that was not read may exist.
func inventoryAfter(before []v1alpha1.InventoryEntry, results []Result) []v1alpha1.InventoryEntry {
	var inventory []v1alpha1.InventoryEntry
	for i := range results {
		if e := results[i].Entry; e != nil {
			inventory = append(inventory, *e)
		}
	}
	if !slices.ContainsFunc(results, incomplete) {
		return inventory
	}
	for _, e := range before {
		key := keyOf(e)
		replaced := slices.ContainsFunc(results, func(r Result) bool {
			return r.Key == key && (r.Entry != nil || r.Action == Prune && r.Failure == nil)
		})
		if !replaced {
			inventory = append(inventory, e)
		}
	}
	return inventory
}

// incomplete reports whether a result ended the plan before its last target.
func incomplete(r Result) bool {
	if r.Action == Prune {
		return aborts(r.Failure)
	}
	return r.Failure != nil
}

// notExecuted returns the results of steps that were not executed.
func notExecuted(steps []Step) []Result {
	results := make([]Result, len(steps), len(steps)+1)
	for i := range steps {
		results[i] = Result{Key: steps[i].Key(), Action: steps[i].Action, Unobserved: true}
	}
	return results
}

// result returns the result of a step without a write.
func (s *Step) result() Result {
	return Result{Key: s.Key(), Action: s.Action, Failure: s.Failure, Unobserved: s.Action == Wait}
}

// resultWith returns the result of a step whose child exists.
func (s *Step) resultWith(object metav1.Object) Result {
	noted := entry(s.Key(), object)
	noted.Recreating = s.Recreating && !adopted(object)
	return Result{Key: s.Key(), Action: s.Action, Entry: &noted, Retained: s.Retained}
}

// reportOnly returns the result of a step that leaves drift uncorrected. A deleted child
// keeps its inventory entry: without the entry it would be a new child, and be created.
func (s *Step) reportOnly(owner *Owner) Result {
	r := s.result()
	if s.Live != nil {
		r = s.resultWith(s.Live)
	} else if noted, known := owner.entry(s.Key()); known {
		r.Entry = &noted
	}
	if r.Deferred = s.Deferred; !r.Deferred {
		r.Remaining = []RemainingDrift{{Key: s.Key(), Fields: s.Drift.Fields, Deleted: s.Deleted, Intent: s.Intent, Found: s.Live}}
	}
	return r
}

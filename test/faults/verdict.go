package faults

import (
	"fmt"
	"strings"
)

// A point that all clean runs met may be skipped by a correct run with a fault, in these
// cases only:
//
//   - An event of a watch. Runs share one manager, so a watch that a fault ends for one run
//     is listed again for all. The list then contains the object, and no event comes.
//   - A read or a dry run. It is only needed while the cache lags behind a write, which
//     depends on timing.
//   - A request for the second time or later, a report of a status, or an Event. Two
//     changes that are near in time are reported once.
//
// Everything else is the first write of an object, and no run can converge without it.

// Optional reports whether a correct run may skip the point.
func (p Point) Optional() bool {
	return p.Event() || !p.Mutates() || p.N > 1 || strings.HasSuffix(p.Kind, ".status") || p.Kind == "events"
}

// The tolerance for optional points that are not reached. 2.0 % were not reached in a
// whole suite on two quiet cores (116 of 5,662 cases), 4.4 % besides other work. A few are
// always allowed, because a small selection has no meaningful share.
const (
	toleratedShare = 0.10
	toleratedFew   = 3
)

// Tally is what the cases of a suite came to.
type Tally struct {
	// Chosen is the number of cases that were selected.
	Chosen int
	// Injected is the number of cases whose fault was injected.
	Injected int
	// NotReached are the cases whose run converged without meeting the point.
	NotReached []Case
	// NotRun is the number of cases that FAULTS_MINUTES left out.
	NotRun int
	// Remaining are the namespaces that did not become empty, with what is left in each.
	Remaining []string
}

// Complaints returns what makes the suite fail although no single case did.
func (t Tally) Complaints() []string {
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if t.Chosen > 0 && t.Injected == 0 {
		complain("none of %d cases had its fault injected (%d not reached, %d not run): nothing was tested; repeat it, or choose other cases%s",
			t.Chosen, len(t.NotReached), t.NotRun, example(t.NotReached))
	}
	for _, c := range t.NotReached {
		if !c.Point.Optional() {
			complain("%s: not reached, although no run can converge without this write: the run changed its course, or converged by accident; replay: %s", c, c.Replay())
		}
	}
	if tried, n := t.Injected+len(t.NotReached), len(t.NotReached); n > max(toleratedFew, int(toleratedShare*float64(tried))) {
		complain("%d of %d points were not reached, more than %d and %.0f %%: the clean runs do not show what runs with faults do; repeat it on a quiet machine, then look for requests that depend on timing%s",
			n, tried, toleratedFew, toleratedShare*100, example(t.NotReached))
	}
	for _, left := range t.Remaining {
		complain("%s", left)
	}
	return found
}

func example(cases []Case) string {
	var names []string
	for _, c := range cases[:min(shown, len(cases))] {
		names = append(names, c.Replay())
	}
	if len(names) == 0 {
		return ""
	}
	return "; not reached were for example:\n  " + strings.Join(names, "\n  ")
}

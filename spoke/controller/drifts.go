package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

const (
	// maxOpen bounds the objects in status.openDrifts, and shownOpen those that a
	// message names.
	maxOpen   = 8
	shownOpen = 3
)

// latestDrift counts every repair of this reconcile and shows the last one. Values
// and culprits are looked up here, when the repair is done.
func latestDrift(old *v1alpha1.Drift, changes []apply.Change) *v1alpha1.Drift {
	latest := old
	for i := range changes {
		change := &changes[i]
		if !change.Drifted() {
			continue
		}
		next := &v1alpha1.Drift{
			DriftFinding: describe(change.Key, change.Intent, change.Found, change.Finding.Missing, change.Deleted),
			At:           metav1.NewMicroTime(change.DoneAt),
			RepairedIn:   metav1.Duration{Duration: change.Took.Round(100 * time.Microsecond)},
			Count:        1,
		}
		if latest != nil {
			next.Count = latest.Count + 1
		}
		latest = next
	}
	return latest
}

// openDrifts is what differs and stays so, as far as the member was seen; otherwise
// what was known stays.
func openDrifts(old []v1alpha1.DriftFinding, s *snapshot, r *result) []v1alpha1.DriftFinding {
	switch {
	case s.cache.DeletionTimestamp != nil:
		return nil
	case r.observation == nil, r.failure != nil && r.failure.Class == v1alpha1.ClassUnreachable:
		return old
	}
	var found []v1alpha1.DriftFinding
	for i := range r.report.Open {
		o := &r.report.Open[i]
		f := describe(o.Key, o.Intent, o.Found, o.Fields, o.Deleted)
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b v1alpha1.DriftFinding) int { return cmp.Compare(a.Object, b.Object) })
	return found[:min(len(found), maxOpen)]
}

func describe(key apply.Key, intent *unstructured.Unstructured, found metav1.Object, fields *drift.Fields, deleted bool) v1alpha1.DriftFinding {
	if deleted {
		return v1alpha1.DriftFinding{Object: key.String(), Deleted: true, Manager: drift.Unknown}
	}
	return drift.Describe(key.String(), intent, found, fields)
}

// differs says in a word and a sentence how the children are left to be other than
// the spec asks, or nothing.
func differs(status *v1alpha1.MemberCacheStatus, r *result) (reason, message string) {
	if r.failure != nil || len(status.OpenDrifts) == 0 {
		return "", ""
	}
	return v1alpha1.ReasonDriftReported, sentence(status.OpenDrifts)
}

// driftedCondition is there while something differs that is not put back.
func driftedCondition(set conditions, open []v1alpha1.DriftFinding) {
	set.only(v1alpha1.ConditionDrifted, len(open) > 0, v1alpha1.ReasonDriftReported, sentence(open))
}

// sentence names objects, fields and managers.
func sentence(open []v1alpha1.DriftFinding) string {
	var parts []string
	for i := range open {
		if i == shownOpen {
			parts = append(parts, fmt.Sprintf("and %d more objects", len(open)-shownOpen))
			break
		}
		f := &open[i]
		what := "was deleted"
		if !f.Deleted {
			what = strings.Join(f.Fields, ", ") + " changed by " + f.Manager
		}
		parts = append(parts, f.Object+": "+what)
	}
	return strings.Join(parts, "; ")
}

package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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

// latestDrift counts every correction of this reconcile and shows the last one. Values
// and managers are computed here, after the correction, so that they do not delay it.
func latestDrift(old *v1alpha1.Drift, changes []apply.Change) *v1alpha1.Drift {
	latest := old
	for i := range changes {
		change := &changes[i]
		if !change.Drifted() {
			continue
		}
		next := &v1alpha1.Drift{
			DriftFinding: describeChange(change),
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

// openDrifts returns the remaining drift, as far as the children were read. The drift of
// other children stays as it was reported.
func openDrifts(old []v1alpha1.DriftFinding, s *snapshot, r *result) []v1alpha1.DriftFinding {
	switch {
	case s.cache.DeletionTimestamp != nil:
		return nil
	case r.observation == nil, r.failure != nil && r.failure.Class == v1alpha1.ClassUnreachable:
		return old
	}
	var found []v1alpha1.DriftFinding
	for i := range r.report.Remaining {
		o := &r.report.Remaining[i]
		found = append(found, describe(o.Key, o.Intent, o.Found, o.Fields, o.Deleted, o.Foreign))
	}
	found = append(found, r.conflicts.open...)
	seen := len(found)
	for _, key := range r.report.Unobserved {
		for i := range old {
			if old[i].Object == key.String() && !slices.ContainsFunc(found[:seen], func(f v1alpha1.DriftFinding) bool { return f.Object == old[i].Object && f.Foreign == old[i].Foreign }) {
				found = append(found, old[i])
			}
		}
	}
	slices.SortStableFunc(found, func(a, b v1alpha1.DriftFinding) int { return cmp.Compare(a.Object, b.Object) })
	return found[:min(len(found), maxOpen)]
}

func describe(key apply.Key, intent *unstructured.Unstructured, found metav1.Object, fields *drift.Fields, deleted, foreign bool) v1alpha1.DriftFinding {
	if deleted {
		return v1alpha1.DriftFinding{Object: key.String(), Deleted: true, Manager: drift.Unknown}
	}
	f := drift.Describe(key.String(), intent, found, fields)
	f.Foreign = foreign
	return f
}

func describeStep(s *apply.Step) v1alpha1.DriftFinding {
	if s.Action == apply.RemoveForeign {
		return describe(s.Key(), nil, s.Live, s.Foreign, false, true)
	}
	return describe(s.Key(), s.Intent, s.Live, s.Drift.Fields, s.Deleted, false)
}

func describeChange(c *apply.Change) v1alpha1.DriftFinding {
	if c.Action == apply.RemoveForeign {
		return describe(c.Key, nil, c.Found, c.Foreign, false, true)
	}
	return describe(c.Key, c.Intent, c.Found, c.Drift.Fields, c.Deleted, false)
}

// appliedDrift returns reason and message of the Applied condition where children remain
// different from the spec, or nothing.
func appliedDrift(status *v1alpha1.MemberCacheStatus, r *result) (reason, message string) {
	if r.failure != nil {
		return "", ""
	}
	// A field that another client added is no difference to the spec.
	differing := slices.DeleteFunc(slices.Clone(status.OpenDrifts), func(f v1alpha1.DriftFinding) bool { return f.Foreign })
	if len(differing) == 0 {
		return "", ""
	}
	return v1alpha1.ReasonDriftReported, driftMessage(differing)
}

// setDrifted sets the Drifted condition while drift remains.
func setDrifted(status *v1alpha1.MemberCacheStatus, s *snapshot, r *result) {
	open := status.OpenDrifts
	reason, message := v1alpha1.ReasonForeignFields, driftMessage(open)
	if slices.ContainsFunc(open, func(f v1alpha1.DriftFinding) bool { return !f.Foreign }) {
		reason = v1alpha1.ReasonDriftReported
	}
	was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrifted)
	stays := was != nil && was.Reason == v1alpha1.ReasonDriftRefused && len(r.report.Unobserved) > 0
	if stays || slices.ContainsFunc(r.report.Remaining, func(o apply.RemainingDrift) bool { return o.Refused }) {
		reason = v1alpha1.ReasonDriftRefused
	}
	if conflict := r.conflicts.failure(); conflict != nil && len(r.conflicts.open) > 0 {
		reason, message = conflict.Reason, conflict.Message
	}
	if len(open) > 0 && r.observation == nil && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDrifted) {
		// The children were not read, so the condition stays.
		return
	}
	conditionsOf(status, s).TrueOrAbsent(v1alpha1.ConditionDrifted, len(open) > 0, reason, message)
}

// managersOf names the known managers of a drift.
func managersOf(f *v1alpha1.DriftFinding) string {
	known := slices.DeleteFunc(f.Managers(), func(manager string) bool { return manager == "" || manager == drift.Unknown })
	switch {
	case len(known) == 0:
		return drift.Unknown
	case len(known) > shownOpen:
		return fmt.Sprintf("%s and %d more", strings.Join(known[:shownOpen], ", "), len(known)-shownOpen)
	}
	return strings.Join(known, " and ")
}

// driftMessage names objects, fields and managers.
func driftMessage(open []v1alpha1.DriftFinding) string {
	var parts []string
	for i := range open {
		if i == shownOpen {
			parts = append(parts, fmt.Sprintf("and %d more objects", len(open)-shownOpen))
			break
		}
		f := &open[i]
		by := managersOf(f)
		what := f.FieldList() + " changed by " + by
		switch {
		case f.Deleted:
			what = "was deleted"
		case f.Foreign:
			what = f.FieldList() + " added by " + by
		}
		parts = append(parts, f.Object+": "+what)
	}
	return strings.Join(parts, "; ")
}

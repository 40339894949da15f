package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func changedBy(manager string, fields ...string) v1alpha1.DriftFinding {
	return v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Fields: fields, Manager: manager}
}

func TestChildConflict_TripsOnRepeatedChange(t *testing.T) {
	const replicas, image = "spec.replicas", "image"
	kubectl, argo := changedBy("kubectl", replicas), changedBy("argocd", replicas)
	deleted := v1alpha1.DriftFinding{Deleted: true, Manager: drift.Unknown}
	// Another manager changes the image, as often.
	both := changedBy("kubectl", replicas, image)
	both.Changes = []v1alpha1.FieldChange{{Path: image, Manager: "updater"}}
	updater := changedBy("updater", image)
	for _, c := range []struct {
		name  string
		every time.Duration
		of    []v1alpha1.DriftFinding
		trips bool
	}{
		{"four times", time.Second, []v1alpha1.DriftFinding{kubectl, kubectl, kubectl, kubectl}, false},
		{"five times", time.Second, []v1alpha1.DriftFinding{kubectl, kubectl, kubectl, kubectl, kubectl}, true},
		{"five times, within two minutes", 29 * time.Second, []v1alpha1.DriftFinding{kubectl, kubectl, kubectl, kubectl, kubectl}, true},
		{"five times, over a longer time", 31 * time.Second, []v1alpha1.DriftFinding{kubectl, kubectl, kubectl, kubectl, kubectl}, false},
		{"five times by two", time.Second, []v1alpha1.DriftFinding{kubectl, argo, kubectl, argo, kubectl}, false},
		{"five times each by two, one field each", time.Second, []v1alpha1.DriftFinding{kubectl, updater, kubectl, updater, kubectl, updater, kubectl, updater, kubectl}, true},
		{"four times each by two, one field each", time.Second, []v1alpha1.DriftFinding{kubectl, updater, kubectl, updater, kubectl, updater, kubectl, updater}, false},
		{"five times by two at once", time.Second, []v1alpha1.DriftFinding{both, updater, updater, updater, updater}, true},
		{"five times each by two, the same field", time.Second, []v1alpha1.DriftFinding{kubectl, argo, kubectl, argo, kubectl, argo, kubectl, argo, kubectl}, true},
		{"five times, another field each time", time.Second, []v1alpha1.DriftFinding{changedBy("x", "a"), changedBy("x", "b"), changedBy("x", "c"), changedBy("x", "d"), changedBy("x", "e")}, false},
		{"five times, with other fields", time.Second, []v1alpha1.DriftFinding{kubectl, changedBy("kubectl", image, replicas), kubectl, kubectl, changedBy("kubectl", replicas, "z")}, true},
		{"deleted five times", time.Second, []v1alpha1.DriftFinding{deleted, deleted, deleted, deleted, deleted}, true},
		{"a field removed five times", time.Second, []v1alpha1.DriftFinding{changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a")}, true},
		{"the last five of many", time.Second, []v1alpha1.DriftFinding{argo, deleted, kubectl, kubectl, kubectl, kubectl, kubectl}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &childConflict{}
			for i, finding := range c.of {
				f.recordCorrection(finding, noon.Add(time.Duration(i)*c.every))
			}
			last := noon.Add(time.Duration(len(c.of)-1) * c.every)
			if f.tripped() {
				t.Error("tripped while the child is in sync")
			}
			latest := func() v1alpha1.DriftFinding { return c.of[len(c.of)-1] }
			if deferred := f.defers(latest, last.Add(time.Millisecond)); deferred != c.trips || f.tripped() != c.trips {
				t.Errorf("another change: deferred %t, tripped %t, want %t", deferred, f.tripped(), c.trips)
			}
			for one, times := range f.corrections {
				if len(times) > conflictThreshold {
					t.Errorf("%d times are kept of %v", len(times), one)
				}
			}
		})
	}
}

func TestChildConflict_DoublesIntervalUpToFiveMinutes(t *testing.T) {
	f, now := &childConflict{}, noon
	again := changedBy("kubectl", "spec.replicas")
	for range conflictThreshold {
		f.recordCorrection(again, now)
	}
	if !f.defers(func() v1alpha1.DriftFinding { return again }, now) {
		t.Fatal("not deferred")
	}
	var intervals []string
	for range 6 {
		intervals = append(intervals, f.due.Sub(now).String())
		now = f.due
		f.recordCorrection(changedBy("kubectl", "spec.replicas"), now)
	}
	if got, want := strings.Join(intervals, " "), "30s 1m0s 2m0s 4m0s 5m0s 5m0s"; got != want {
		t.Errorf("intervals %s, want %s", got, want)
	}
	if f.count != conflictThreshold+6 {
		t.Errorf("counted %d", f.count)
	}
}

func TestChildConflict_RecreatesDeletedChildAtOnce(t *testing.T) {
	f, now := &childConflict{}, noon
	again, deletion := changedBy("kubectl", "spec.replicas"), v1alpha1.DriftFinding{Deleted: true, Manager: drift.Unknown}
	deleted := func() v1alpha1.DriftFinding { return deletion }
	for range conflictThreshold {
		f.recordCorrection(again, now)
	}
	if !f.defers(func() v1alpha1.DriftFinding { return again }, now) {
		t.Fatal("not deferred")
	}
	due := f.due
	for n := range conflictThreshold - 1 {
		if f.defers(deleted, now) {
			t.Fatalf("deferred when it was deleted %d times", n+1)
		}
		f.recordCorrection(deletion, now)
	}
	if f.count != conflictThreshold || !f.due.Equal(due) {
		t.Errorf("counted %d, due %s later: only replicas are contested", f.count, f.due.Sub(due))
	}
	f.recordCorrection(deletion, now)
	if !f.defers(deleted, now) {
		t.Error("a repeated deletion is not deferred")
	}
}

var (
	contestedChild = apply.Key{Kind: children.StatefulSetKind, Name: "sessions"}
)

// again returns the drift after another change by kubectl.
func again() v1alpha1.DriftFinding {
	f := changedBy("kubectl", "spec.replicas")
	f.Changes = []v1alpha1.FieldChange{{Path: "spec.replicas", Was: "2", Is: "5"}}
	return f
}

// correction returns the report of a correction of kubectl's change.
func correction() *apply.Report {
	open := scaled("sessions")
	return &apply.Report{Changes: []apply.Change{{Key: open.Key, Action: apply.Correct, Drift: drift.Finding{Fields: open.Fields}, Intent: open.Intent, Found: open.Found}}}
}

func TestConflictBreaker_ThrottlesUntilInSync(t *testing.T) {
	var f conflictBreaker
	now := noon
	for range conflictThreshold {
		if f.defers(contestedChild, again, now) {
			t.Fatal("deferred before there was a conflict")
		}
		now = now.Add(time.Second)
		f.update(correction(), now)
	}
	if b := f.update(&apply.Report{}, now); b.failure() != nil {
		t.Error("the child is in sync, and no manager has changed it again")
	}
	other := func() v1alpha1.DriftFinding { return changedBy("kubectl-edit", "spec.replicas") }
	if f.defers(contestedChild, other, now) {
		t.Error("another manager's change is deferred")
	}
	if !f.defers(contestedChild, again, now.Add(29*time.Second)) || f.defers(contestedChild, again, now.Add(30*time.Second)) {
		t.Error("it must be corrected after thirty seconds, no sooner and no later")
	}
	if f.defers(apply.Key{Kind: children.ServiceKind, Name: "sessions"}, again, now) {
		t.Error("another child is deferred too")
	}
	deferred := &apply.Report{Deferred: []apply.Key{contestedChild}}
	first := f.update(deferred, now.Add(10*time.Second))
	if first.requeue != 20*time.Second || !first.due.Equal(now.Add(30*time.Second)) {
		t.Errorf("deferred: requeue after %s, due %s", first.requeue, first.due)
	}
	const message = "StatefulSet/sessions: spec.replicas changed 5 times by kubectl; corrections are throttled"
	if failure := first.failure(); failure == nil || failure.Message != message || failure.Class != v1alpha1.ClassConflict || failure.Reason != v1alpha1.ReasonDriftFight {
		t.Errorf("failure %+v", first.failure())
	}
	// The status changes with the next correction only.
	later := f.update(deferred, now.Add(20*time.Second))
	if diff := cmp.Diff(first.open, later.open); diff != "" || first.failure().Message != later.failure().Message || !first.due.Equal(later.due) || first.attempts != later.attempts {
		t.Errorf("the status changes between two corrections:\n%s", diff)
	}
	now = now.Add(30 * time.Second)
	after := f.update(correction(), now)
	if failure := after.failure(); failure == nil || !strings.Contains(failure.Message, "6 times") || len(after.open) != 0 {
		t.Errorf("after the first throttled correction: %+v, open %v", failure, after.open)
	}
	if next := f.update(deferred, now); next.attempts != first.attempts+1 || len(next.open) != 1 {
		t.Errorf("after another change: attempt %d, open %v", next.attempts, next.open)
	}
	// A correction that failed corrects nothing.
	if b := f.update(&apply.Report{Deferred: []apply.Key{contestedChild}}, now); len(b.open) != 1 {
		t.Errorf("changed: open %v", b.open)
	}
	if b := f.update(&apply.Report{Unobserved: []apply.Key{contestedChild}}, now.Add(conflictWindow)); b.failure() == nil || len(b.open) != 1 {
		t.Errorf("after a correction that failed: %v, open %v", b.failure(), b.open)
	}
	f.update(&apply.Report{}, now)
	// A child that was not read is not in sync, however long ago it was corrected.
	if b := f.update(&apply.Report{Unobserved: []apply.Key{contestedChild}}, now.Add(2*conflictWindow)); b.failure() == nil || b.requeue != 0 {
		t.Errorf("not read: %v, requeue after %s", b.failure(), b.requeue)
	}
	// The conflict ends once the child was in sync for two minutes, not while it differs.
	if b := f.update(&apply.Report{}, now.Add(conflictWindow-time.Second)); b.failure() == nil || b.requeue != time.Second {
		t.Errorf("ended too soon: requeue after %s", b.requeue)
	}
	if b := f.update(deferred, now.Add(conflictWindow+time.Second)); b.failure() == nil {
		t.Error("ended while the child differs")
	}
	// Another client corrected it.
	now = now.Add(conflictWindow + 2*time.Second)
	if b := f.update(&apply.Report{}, now); b.failure() == nil || b.requeue != conflictWindow {
		t.Errorf("in sync since a moment ago: requeue after %s", b.requeue)
	}
	if b := f.update(&apply.Report{}, now.Add(conflictWindow)); b.failure() != nil || b.requeue != 0 {
		t.Error("not ended after two minutes in sync")
	}
	if len(f) > 0 {
		t.Errorf("%d children are kept", len(f))
	}
}

func TestConflictBreaker_EndsWithThePolicy(t *testing.T) {
	begin := func() *conflictBreaker {
		f := &conflictBreaker{}
		for range conflictThreshold {
			f.update(correction(), noon)
		}
		if !f.defers(contestedChild, again, noon) {
			t.Fatal("not deferred")
		}
		return f
	}
	f := begin()
	if b := f.update(&apply.Report{Remaining: []apply.RemainingDrift{scaled("sessions")}}, noon); b.failure() != nil || f.defers(contestedChild, again, noon) {
		t.Error("drift that the policy leaves is a conflict")
	}
	f = begin()
	if b := f.update(&apply.Report{Remaining: []apply.RemainingDrift{{Key: contestedChild, Foreign: true}}}, noon); b.failure() == nil {
		t.Error("foreign fields that stay end a conflict over other fields")
	}
}

func TestSummarize_ReportsConflictInSameBytes(t *testing.T) {
	var f conflictBreaker
	for range conflictThreshold {
		f.update(correction(), noon)
	}
	f.defers(contestedChild, again, noon)
	reconciled := func(report *apply.Report, now time.Time) *result {
		r := &result{report: *report, observation: readyIs, conflicts: f.update(report, now)}
		r.failure = r.conflicts.failure()
		if len(r.conflicts.open) > 0 {
			r.attempt = attempt{count: r.conflicts.attempts, at: shownTime(r.conflicts.due)}
		}
		return r
	}
	mc := wasReady()
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, reconciled(&apply.Report{Deferred: []apply.Key{contestedChild}}, noon))
	got := mc.Status
	if got.State != v1alpha1.MemberBlocked || got.Class != v1alpha1.ClassConflict || got.Reason != v1alpha1.ReasonDriftFight || !got.SelfResolving || got.Revision != "new" ||
		got.RetryAt == nil || !got.RetryAt.Time.Equal(noon.Add(firstCorrectionInterval)) || got.Attempt != 1 {
		t.Errorf("%s %+v, revision %s", got.State, got.Outcome, got.Revision)
	}
	if len(got.OpenDrifts) != 1 || got.OpenDrifts[0].Object != "StatefulSet/sessions" || got.OpenDrifts[0].Changes[0].Is != "5" {
		t.Errorf("remaining drift %+v", got.OpenDrifts)
	}
	for kind, want := range map[string]string{v1alpha1.ConditionApplied: "False DriftFight", v1alpha1.ConditionDrifted: "True DriftFight", v1alpha1.ConditionReady: "False DriftFight", v1alpha1.ConditionStalled: "True DriftFight"} {
		is := ""
		if c := meta.FindStatusCondition(got.Conditions, kind); c != nil {
			is = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
		if is != want {
			t.Errorf("%s is %q, want %q", kind, is, want)
		}
	}
	for i, report := range []*apply.Report{{Deferred: []apply.Key{contestedChild}}, {Deferred: []apply.Key{contestedChild}}} {
		now := noon.Add(time.Duration(i+1) * 5 * time.Second)
		if diff := cmp.Diff(got, summarize(&snapshot{now: now, cache: mc}, reconciled(report, now))); diff != "" {
			t.Errorf("at %s:\n%s", now, diff)
		}
	}
	// While the child is in sync nothing differs, and the conflict has not ended yet.
	inSync := summarize(&snapshot{now: noon.Add(30 * time.Second), cache: mc}, reconciled(&apply.Report{}, noon.Add(30*time.Second)))
	if inSync.Reason != v1alpha1.ReasonDriftFight || inSync.State != v1alpha1.MemberBlocked || len(inSync.OpenDrifts) > 0 || inSync.Attempt != 0 || inSync.RetryAt != nil {
		t.Errorf("in sync: %s %s, open %v, attempt %d at %v", inSync.State, inSync.Reason, inSync.OpenDrifts, inSync.Attempt, inSync.RetryAt)
	}
	over := summarize(&snapshot{now: noon.Add(time.Hour), cache: mc}, reconciled(&apply.Report{}, noon.Add(time.Hour)))
	if over.State != v1alpha1.MemberReady || over.SelfResolving || len(over.OpenDrifts) > 0 || over.RetryAt != nil || meta.FindStatusCondition(over.Conditions, v1alpha1.ConditionDrifted) != nil {
		t.Errorf("after the end: %s, %v, conditions %v", over.State, over.OpenDrifts, over.Conditions)
	}
}

func TestChildConflict_DescribesManagersAndCounts(t *testing.T) {
	both := changedBy("kubectl", "spec.replicas", "image", "label")
	both.Changes = []v1alpha1.FieldChange{{Path: "image", Manager: "updater"}, {Path: "label", Manager: drift.Unknown}}
	f := &childConflict{}
	for i := range conflictThreshold {
		f.recordCorrection(both, noon.Add(time.Duration(i)*time.Second))
	}
	describes := func(want string) {
		t.Helper()
		var c conflicts
		c.add(contestedChild, f)
		if got := c.failure().Message; got != "StatefulSet/sessions: "+want+"; corrections are throttled" {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	// Only one of them changes its field again.
	alone := changedBy("updater", "image")
	if !f.defers(func() v1alpha1.DriftFinding { return alone }, noon.Add(conflictThreshold*time.Second)) {
		t.Fatal("not deferred")
	}
	describes("image changed 5 times by updater")
	// Another manager's change is deferred too, and is no part of the conflict.
	other := changedBy("kubectl-edit", "other")
	f.recordCorrection(other, f.due)
	describes("image changed 5 times by updater")
	f.recordCorrection(alone, f.due)
	describes("image changed 6 times by updater")

	f = &childConflict{}
	for i := range conflictThreshold {
		f.recordCorrection(both, noon.Add(time.Duration(i)*time.Second))
	}
	f.defers(func() v1alpha1.DriftFinding { return both }, noon.Add(conflictThreshold*time.Second))
	describes("image changed 5 times by updater, label changed 5 times by an unknown manager, spec.replicas changed 5 times by kubectl")
}

// For example a field that a person set back, whose manager still owns it.
func TestChildConflict_IgnoresEqualValues(t *testing.T) {
	f := &childConflict{}
	for range conflictThreshold {
		f.recordCorrection(again(), noon)
	}
	equal := func() v1alpha1.DriftFinding {
		return v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Manager: drift.Unknown}
	}
	if f.defers(equal, noon) || f.tripped() {
		t.Error("a conflict without a difference")
	}
	f.defers(again, noon)
	if !f.tripped() || f.defers(equal, noon) {
		t.Error("in a conflict, a child with equal values is deferred")
	}
}

func TestChildConflict_DropsOldCorrections(t *testing.T) {
	f := &childConflict{}
	for i := range 1000 {
		f.recordCorrection(changedBy(fmt.Sprint("kubectl-", i), "spec.replicas"), noon.Add(time.Duration(i)*time.Second))
	}
	if len(f.corrections) > 121 {
		t.Errorf("%d changes are kept of the last two minutes", len(f.corrections))
	}
}

func TestChildConflict_ShowsFirstChangeAfterCorrection(t *testing.T) {
	f := &childConflict{}
	as := func(is string) func() v1alpha1.DriftFinding {
		return func() v1alpha1.DriftFinding {
			finding := again()
			finding.Changes[0].Is = is
			return finding
		}
	}
	shows := func(want string) {
		t.Helper()
		if got := f.finding.Changes[0].Is; got != want {
			t.Errorf("shown is %s, want %s", got, want)
		}
	}
	for range conflictThreshold {
		f.recordCorrection(again(), noon)
	}
	now := noon.Add(time.Second)
	f.defers(as("7"), now)
	shows("7")
	// A report of each change would be a write to the hub.
	f.defers(as("8"), now)
	shows("7")
	f.recordCorrection(as("8")(), f.due)
	now = noon.Add(31 * time.Second)
	f.defers(as("9"), now)
	shows("9")
	if f.defers(as("9"), f.due) {
		t.Error("deferred although it is due")
	}
	// Another client corrected it, and it is changed once more.
	breaker := conflictBreaker{contestedChild: f}
	breaker.update(&apply.Report{}, now)
	f.defers(as("11"), now)
	shows("11")
}

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

func changedBy(manager string, fields ...string) v1alpha1.DriftFinding {
	return v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Fields: fields, Manager: manager}
}

func TestAFightIsOneManagerThatChangesOneFieldAgainAndAgain(t *testing.T) {
	const replicas, image = "spec.replicas", "image"
	kubectl, argo := changedBy("kubectl", replicas), changedBy("argocd", replicas)
	gone := v1alpha1.DriftFinding{Deleted: true, Manager: drift.Unknown}
	// The image is changed by somebody else, as often.
	both := changedBy("kubectl", replicas, image)
	both.Changes = []v1alpha1.FieldChange{{Path: image, Manager: "updater"}}
	updater := changedBy("updater", image)
	for _, c := range []struct {
		name  string
		every time.Duration
		of    []v1alpha1.DriftFinding
		slow  bool
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
		{"five times, with other fields beside", time.Second, []v1alpha1.DriftFinding{kubectl, changedBy("kubectl", image, replicas), kubectl, kubectl, changedBy("kubectl", replicas, "z")}, true},
		{"deleted five times", time.Second, []v1alpha1.DriftFinding{gone, gone, gone, gone, gone}, true},
		{"a field removed five times", time.Second, []v1alpha1.DriftFinding{changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a"), changedBy(drift.Unknown, "a")}, true},
		{"the last five of many", time.Second, []v1alpha1.DriftFinding{argo, gone, kubectl, kubectl, kubectl, kubectl, kubectl}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fight{}
			for i, finding := range c.of {
				f.repaired(finding, noon.Add(time.Duration(i)*c.every))
			}
			last := noon.Add(time.Duration(len(c.of)-1) * c.every)
			if f.slow() {
				t.Error("slow while it is right")
			}
			again := func() v1alpha1.DriftFinding { return c.of[len(c.of)-1] }
			if held := f.holds(again, last.Add(time.Millisecond)); held != c.slow || f.slow() != c.slow {
				t.Errorf("once more: held %t, slow %t, want %t", held, f.slow(), c.slow)
			}
			for once, at := range f.flips {
				if len(at) > fightFlips {
					t.Errorf("%d times are remembered of %v", len(at), once)
				}
			}
		})
	}
}

func TestEachPauseOfAFightIsTwiceTheLastUpToFiveMinutes(t *testing.T) {
	f, now := &fight{}, noon
	again := changedBy("kubectl", "spec.replicas")
	for range fightFlips {
		f.repaired(again, now)
	}
	if !f.holds(func() v1alpha1.DriftFinding { return again }, now) {
		t.Fatal("not held")
	}
	var pauses []string
	for range 6 {
		pauses = append(pauses, f.due.Sub(now).String())
		now = f.due
		f.repaired(changedBy("kubectl", "spec.replicas"), now)
	}
	if got, want := strings.Join(pauses, " "), "30s 1m0s 2m0s 4m0s 5m0s 5m0s"; got != want {
		t.Errorf("pauses %s, want %s", got, want)
	}
	if f.count != fightFlips+6 {
		t.Errorf("counted %d", f.count)
	}
}

func TestWhatIsDeletedIsMadeAnewAtOnceInAFightOverItsFields(t *testing.T) {
	f, now := &fight{}, noon
	again, gone := changedBy("kubectl", "spec.replicas"), v1alpha1.DriftFinding{Deleted: true, Manager: drift.Unknown}
	deleted := func() v1alpha1.DriftFinding { return gone }
	for range fightFlips {
		f.repaired(again, now)
	}
	if !f.holds(func() v1alpha1.DriftFinding { return again }, now) {
		t.Fatal("not held")
	}
	due := f.due
	for n := range fightFlips - 1 {
		if f.holds(deleted, now) {
			t.Fatalf("held when it was deleted %d times", n+1)
		}
		f.repaired(gone, now)
	}
	if f.count != fightFlips || !f.due.Equal(due) {
		t.Errorf("counted %d, due %s later: the fight is over replicas", f.count, f.due.Sub(due))
	}
	f.repaired(gone, now)
	if !f.holds(deleted, now) {
		t.Error("whoever deletes it again and again fights too, and is not held")
	}
}

var (
	fought   = types.NamespacedName{Namespace: "shop", Name: "sessions.a"}
	foughtIs = apply.Key{Kind: render.StatefulSetKind, Name: "sessions"}
)

// again is what kubectl does to it once more.
func again() v1alpha1.DriftFinding {
	f := changedBy("kubectl", "spec.replicas")
	f.Changes = []v1alpha1.FieldChange{{Path: "spec.replicas", Was: "2", Is: "5"}}
	return f
}

// repair is the report of one that undid what kubectl did.
func repair() *apply.Report {
	open := scaled("sessions")
	return &apply.Report{Changes: []apply.Change{{Key: open.Key, Action: apply.Correct, Drift: drift.Finding{Missing: open.Fields}, Intent: open.Intent, Found: open.Found}}}
}

func TestTheFightBreakerHoldsAndLetsGo(t *testing.T) {
	var f fights
	now := noon
	for range fightFlips {
		if f.hold(fought, foughtIs, again, now) {
			t.Fatal("held before there was a fight")
		}
		now = now.Add(time.Second)
		f.settle(fought, repair(), now)
	}
	if b := f.settle(fought, &apply.Report{}, now); b.failure() != nil {
		t.Error("it is right, and nobody has changed it again")
	}
	other := func() v1alpha1.DriftFinding { return changedBy("kubectl-edit", "spec.replicas") }
	if f.hold(fought, foughtIs, other, now) {
		t.Error("another manager's change is held")
	}
	if !f.hold(fought, foughtIs, again, now.Add(29*time.Second)) || f.hold(fought, foughtIs, again, now.Add(30*time.Second)) {
		t.Error("it is to be put right after thirty seconds, no sooner and no later")
	}
	if f.hold(fought, apply.Key{Kind: render.ServiceKind, Name: "sessions"}, again, now) || f.hold(types.NamespacedName{Name: "other"}, foughtIs, again, now) {
		t.Error("something else is held too")
	}
	held := &apply.Report{Deferred: []apply.Key{foughtIs}}
	said := f.settle(fought, held, now.Add(10*time.Second))
	if said.wait != 20*time.Second || !said.due.Equal(now.Add(30*time.Second)) {
		t.Errorf("held: to be looked at in %s, due %s", said.wait, said.due)
	}
	const message = "StatefulSet/sessions: spec.replicas was changed back 5 times by kubectl; it is put right more and more slowly"
	if failure := said.failure(); failure == nil || failure.Message != message || failure.Class != v1alpha1.ClassConflict || failure.Reason != v1alpha1.ReasonDriftFight {
		t.Errorf("failure %+v", said.failure())
	}
	// What is said changes with the next repair only.
	later := f.settle(fought, held, now.Add(20*time.Second))
	if diff := cmp.Diff(said.open, later.open); diff != "" || said.failure().Message != later.failure().Message || !said.due.Equal(later.due) || said.tries != later.tries {
		t.Errorf("between two repairs something else is said:\n%s", diff)
	}
	now = now.Add(30 * time.Second)
	after := f.settle(fought, repair(), now)
	if failure := after.failure(); failure == nil || !strings.Contains(failure.Message, "6 times") || len(after.open) != 0 {
		t.Errorf("after the first slow repair: %+v, open %v", failure, after.open)
	}
	if next := f.settle(fought, held, now); next.tries != said.tries+1 || len(next.open) != 1 {
		t.Errorf("when it was changed back once more: try %d, open %v", next.tries, next.open)
	}
	// A repair that failed puts nothing right.
	if b := f.settle(fought, &apply.Report{Deferred: []apply.Key{foughtIs}}, now); len(b.open) != 1 {
		t.Errorf("changed back: open %v", b.open)
	}
	if b := f.settle(fought, &apply.Report{Unobserved: []apply.Key{foughtIs}}, now.Add(fightWindow)); b.failure() == nil || len(b.open) != 1 {
		t.Errorf("after a repair that failed: %v, open %v", b.failure(), b.open)
	}
	f.settle(fought, &apply.Report{}, now)
	// What was not looked at is not right, however long ago it was put right.
	if b := f.settle(fought, &apply.Report{Unobserved: []apply.Key{foughtIs}}, now.Add(2*fightWindow)); b.failure() == nil || b.wait != 0 {
		t.Errorf("not looked at: %v, look again in %s", b.failure(), b.wait)
	}
	// It is over once it stayed right for two minutes, not while it is wrong.
	if b := f.settle(fought, &apply.Report{}, now.Add(fightWindow-time.Second)); b.failure() == nil || b.wait != time.Second {
		t.Errorf("over too soon: look again in %s", b.wait)
	}
	if b := f.settle(fought, held, now.Add(fightWindow+time.Second)); b.failure() == nil {
		t.Error("over while it is wrong")
	}
	// Somebody else put it right.
	now = now.Add(fightWindow + 2*time.Second)
	if b := f.settle(fought, &apply.Report{}, now); b.failure() == nil || b.wait != fightWindow {
		t.Errorf("it became right a moment ago: look again in %s", b.wait)
	}
	if b := f.settle(fought, &apply.Report{}, now.Add(fightWindow)); b.failure() != nil || b.wait != 0 {
		t.Error("not over after two minutes in which it was right")
	}
	if len(f.of) > 0 {
		t.Errorf("%d caches are remembered", len(f.of))
	}
}

func TestAFightEndsWithItsMemberCacheAndWithThePolicy(t *testing.T) {
	begin := func() *fights {
		f := &fights{}
		for range fightFlips {
			f.settle(fought, repair(), noon)
		}
		if !f.hold(fought, foughtIs, again, noon) {
			t.Fatal("not held")
		}
		return f
	}
	f := begin()
	f.forget(fought)
	if f.hold(fought, foughtIs, again, noon) || len(f.of) > 0 {
		t.Error("a MemberCache that is gone is remembered")
	}
	f = begin()
	if b := f.settle(fought, &apply.Report{Remaining: []apply.RemainingDrift{scaled("sessions")}}, noon); b.failure() != nil || f.hold(fought, foughtIs, again, noon) {
		t.Error("what is left by policy is fought over")
	}
	f = begin()
	if b := f.settle(fought, &apply.Report{Remaining: []apply.RemainingDrift{{Key: foughtIs, Foreign: true}}}, noon); b.failure() == nil {
		t.Error("foreign fields that stay end a fight over others")
	}
}

func TestAStatusTellsOfAFightInTheSameWordsWhileNothingChanges(t *testing.T) {
	var f fights
	for range fightFlips {
		f.settle(fought, repair(), noon)
	}
	f.hold(fought, foughtIs, again, noon)
	reconciled := func(report *apply.Report, now time.Time) *result {
		r := &result{report: *report, observation: readyIs, bout: f.settle(fought, report, now)}
		r.failure = r.bout.failure()
		if len(r.bout.open) > 0 {
			r.try = attempt{count: r.bout.tries, at: shownTime(r.bout.due)}
		}
		return r
	}
	mc := wasReady()
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, reconciled(&apply.Report{Deferred: []apply.Key{foughtIs}}, noon))
	got := mc.Status
	if got.State != v1alpha1.MemberBlocked || got.Class != v1alpha1.ClassConflict || got.Reason != v1alpha1.ReasonDriftFight || got.Revision != "new" ||
		got.RetryAt == nil || !got.RetryAt.Time.Equal(noon.Add(fightPause)) || got.Attempt != 1 {
		t.Errorf("%s %+v, revision %s", got.State, got.Outcome, got.Revision)
	}
	if len(got.OpenDrifts) != 1 || got.OpenDrifts[0].Object != "StatefulSet/sessions" || got.OpenDrifts[0].Changes[0].Is != "5" {
		t.Errorf("open drifts %+v", got.OpenDrifts)
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
	for i, report := range []*apply.Report{{Deferred: []apply.Key{foughtIs}}, {Deferred: []apply.Key{foughtIs}}} {
		now := noon.Add(time.Duration(i+1) * 5 * time.Second)
		if diff := cmp.Diff(got, summarize(&snapshot{now: now, cache: mc}, reconciled(report, now))); diff != "" {
			t.Errorf("at %s:\n%s", now, diff)
		}
	}
	// Where it is right for the moment nothing differs, and the fight is not over yet.
	right := summarize(&snapshot{now: noon.Add(30 * time.Second), cache: mc}, reconciled(&apply.Report{}, noon.Add(30*time.Second)))
	if right.Reason != v1alpha1.ReasonDriftFight || right.State != v1alpha1.MemberBlocked || len(right.OpenDrifts) > 0 || right.Attempt != 0 || right.RetryAt != nil {
		t.Errorf("right for the moment: %s %s, open %v, attempt %d at %v", right.State, right.Reason, right.OpenDrifts, right.Attempt, right.RetryAt)
	}
	over := summarize(&snapshot{now: noon.Add(time.Hour), cache: mc}, reconciled(&apply.Report{}, noon.Add(time.Hour)))
	if over.State != v1alpha1.MemberReady || len(over.OpenDrifts) > 0 || over.RetryAt != nil || meta.FindStatusCondition(over.Conditions, v1alpha1.ConditionDrifted) != nil {
		t.Errorf("when it is over: %s, %v, conditions %v", over.State, over.OpenDrifts, over.Conditions)
	}
}

func TestAFightNamesThoseWhoTakePartAndHowOften(t *testing.T) {
	both := changedBy("kubectl", "spec.replicas", "image", "label")
	both.Changes = []v1alpha1.FieldChange{{Path: "image", Manager: "updater"}, {Path: "label", Manager: drift.Unknown}}
	f := &fight{}
	for i := range fightFlips {
		f.repaired(both, noon.Add(time.Duration(i)*time.Second))
	}
	tells := func(want string) {
		t.Helper()
		var b bout
		b.add(foughtIs, f, true)
		if got := b.failure().Message; got != "StatefulSet/sessions: "+want+"; it is put right more and more slowly" {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	// Only one of them comes again.
	alone := changedBy("updater", "image")
	if !f.holds(func() v1alpha1.DriftFinding { return alone }, noon.Add(fightFlips*time.Second)) {
		t.Fatal("not held")
	}
	tells("image was changed back 5 times by updater")
	// A stranger's change waits too, and is no part of it.
	stranger := changedBy("kubectl-edit", "other")
	f.repaired(stranger, f.due)
	tells("image was changed back 5 times by updater")
	f.repaired(alone, f.due)
	tells("image was changed back 6 times by updater")

	f = &fight{}
	for i := range fightFlips {
		f.repaired(both, noon.Add(time.Duration(i)*time.Second))
	}
	f.holds(func() v1alpha1.DriftFinding { return both }, noon.Add(fightFlips*time.Second))
	tells("image was changed back 5 times by updater, label was changed back 5 times, by whom is unknown, spec.replicas was changed back 5 times by kubectl")
}

// Such as a field that was set back by hand and is held by whoever did so.
func TestWhatHasItsValuesIsNoFight(t *testing.T) {
	f := &fight{}
	for range fightFlips {
		f.repaired(again(), noon)
	}
	equal := func() v1alpha1.DriftFinding {
		return v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Manager: drift.Unknown}
	}
	if f.holds(equal, noon) || f.slow() {
		t.Error("a fight over nothing")
	}
	f.holds(again, noon)
	if !f.slow() || f.holds(equal, noon) {
		t.Error("in a fight, what has its values is held")
	}
}

func TestFlipsOfLongAgoAreForgotten(t *testing.T) {
	f := &fight{}
	for i := range 1000 {
		f.repaired(changedBy(fmt.Sprint("kubectl-", i), "spec.replicas"), noon.Add(time.Duration(i)*time.Second))
	}
	if len(f.flips) > 121 {
		t.Errorf("%d flips are remembered of the last two minutes", len(f.flips))
	}
}

func TestWhatIsToldOfAFightIsHowTheObjectWasFoundAfterTheLastRepair(t *testing.T) {
	f := &fight{}
	as := func(is string) func() v1alpha1.DriftFinding {
		return func() v1alpha1.DriftFinding {
			finding := again()
			finding.Changes[0].Is = is
			return finding
		}
	}
	tells := func(want string) {
		t.Helper()
		if got := f.finding.Changes[0].Is; got != want {
			t.Errorf("told is %s, want %s", got, want)
		}
	}
	for range fightFlips {
		f.repaired(again(), noon)
	}
	now := noon.Add(time.Second)
	f.holds(as("7"), now)
	tells("7")
	// Each word of the other side would be a write to the hub.
	f.holds(as("8"), now)
	tells("7")
	f.repaired(as("8")(), f.due)
	now = noon.Add(31 * time.Second)
	f.holds(as("9"), now)
	tells("9")
	if f.holds(as("9"), f.due) {
		t.Error("held although it is due")
	}
	// It became right in another way, and is changed once more.
	var of fights
	of.of = map[types.NamespacedName]map[apply.Key]*fight{fought: {foughtIs: f}}
	of.settle(fought, &apply.Report{}, now)
	f.holds(as("11"), now)
	tells("11")
}

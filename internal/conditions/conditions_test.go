package conditions

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

func types(list []metav1.Condition) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.Type)
	}
	return all
}

func TestSetter_OrdersConditionsByTypeWhateverTheOrderOfTheCalls(t *testing.T) {
	kinds := []string{"Ready", "Applied", "Stalled", "Drifted"}
	want := slices.Sorted(slices.Values(kinds))
	for range kinds {
		kinds = append(kinds[1:], kinds[0])
		var list []metav1.Condition
		set := New(&list, 1, noon)
		for _, kind := range kinds {
			set.True(kind, "Reason", "message")
		}
		set.Remove("Ready")
		set.False("Ready", "Reason", "message")
		if diff := cmp.Diff(want, types(list)); diff != "" {
			t.Errorf("set in the order %v (-want +got):\n%s", kinds, diff)
		}
	}
}

func TestSetter_KeepsTheTransitionTimeWhileTheStatusStays(t *testing.T) {
	var list []metav1.Condition
	New(&list, 1, noon).False("Ready", "Starting", "0 of 1")
	New(&list, 2, later).False("Ready", "Failing", "1 of 1")
	want := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Failing", Message: "1 of 1", ObservedGeneration: 2,
		LastTransitionTime: metav1.NewTime(noon)}
	if diff := cmp.Diff(want, *Get(list, "Ready")); diff != "" {
		t.Errorf("the status stays False (-want +got):\n%s", diff)
	}
	New(&list, 2, later).Unknown("Ready", "Unreachable", "no answer")
	if got := Get(list, "Ready"); got.Status != metav1.ConditionUnknown || !got.LastTransitionTime.Time.Equal(later) {
		t.Errorf("the status changed: %+v", got)
	}
}

func TestSetter_ChangesNothingWhenTheValueIsTheSame(t *testing.T) {
	var list []metav1.Condition
	set := func(now time.Time) {
		s := New(&list, 3, now)
		s.True("Ready", "Done", "all ready")
		s.TrueOrAbsent("Stalled", false, "", "")
		s.TrueOrAbsent("Reconciling", true, "Busy", "1 member")
	}
	set(noon)
	before := slices.Clone(list)
	set(later)
	if diff := cmp.Diff(before, list); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	if got := types(list); !slices.Equal(got, []string{"Ready", "Reconciling"}) {
		t.Errorf("conditions %v: Stalled must be absent", got)
	}
}

func TestTransition_LeavesTheOldListUnchanged(t *testing.T) {
	old := []metav1.Condition{{Type: "Reachable", Status: metav1.ConditionTrue, Reason: "Reachable", LastTransitionTime: metav1.NewTime(noon)}}
	next := Transition(old, metav1.Condition{Type: "Reachable", Status: metav1.ConditionFalse, Reason: "ProbeFailed"}, later)
	if !next.LastTransitionTime.Time.Equal(later) || old[0].Status != metav1.ConditionTrue {
		t.Errorf("next %+v, old %+v", next, old[0])
	}
}

func TestEqual_ComparesEverythingButTheTransitionTime(t *testing.T) {
	base := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Done", Message: "m", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(noon)}
	for name, change := range map[string]func(*metav1.Condition){
		"status": func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }, "reason": func(c *metav1.Condition) { c.Reason = "x" },
		"message": func(c *metav1.Condition) { c.Message = "x" }, "generation": func(c *metav1.Condition) { c.ObservedGeneration = 2 },
		"type": func(c *metav1.Condition) { c.Type = "x" },
	} {
		other := base
		change(&other)
		if Equal([]metav1.Condition{base}, other) {
			t.Errorf("another %s counts as equal", name)
		}
	}
	base.LastTransitionTime = metav1.NewTime(later)
	if !Equal([]metav1.Condition{base}, base) {
		t.Error("the same condition does not count as equal")
	}
}

func TestEncode_SortsAndLeavesOutAnUnsetGeneration(t *testing.T) {
	got := Encode([]metav1.Condition{
		{Type: "b", Status: metav1.ConditionTrue, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 4},
		{Type: "a", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)},
	})
	want := []any{
		map[string]any{"type": "a", "status": "False", "reason": "", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z"},
		map[string]any{"type": "b", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-11-30T12:00:00Z", "observedGeneration": int64(4)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

var sessionsKey = types.NamespacedName{Namespace: "shop", Name: "sessions.a"}

func renderer() *member {
	return &member{typer: applyconfigurations.NewTypeConverter(memberScheme)}
}

func TestStates_CountsGenerationsThatStartedLately(t *testing.T) {
	var s states
	for name, ago := range map[string]time.Duration{"old": time.Hour, "just over": longestReportDelay, "young": time.Second, "new": 0} {
		s.setStartedAt(s.get(types.NamespacedName{Name: name}), noon.Add(-ago))
	}
	if n := s.startedAfter(noon.Add(-longestReportDelay)); n != 2 {
		t.Errorf("%d started lately, want young and new", n)
	}
}

// The inventory of a deferred report must not be lost: if the member is lost meanwhile,
// its children would be orphaned without a name.
func TestCacheState_KeepsInventoryOfDeferredReport(t *testing.T) {
	m, mc := renderer(), memberCache()
	state := m.states.get(sessionsKey)
	state.identify(mc.UID)
	render := func() {
		t.Helper()
		if _, _, err := m.render(state, mc, noon); err != nil {
			t.Fatal(err)
		}
	}
	names := func(of *v1alpha1.MemberCache) (all string) {
		state.identify(of.UID)
		for _, e := range state.inventory(of) {
			all += e.Name + " "
		}
		return all
	}
	mc.Status.Inventory = []v1alpha1.InventoryEntry{{Name: "reported"}}
	render()
	if got := names(mc); got != "reported " {
		t.Errorf("before: %q", got)
	}
	state.deferredInventory = []v1alpha1.InventoryEntry{{Name: "reported"}, {Name: "new"}}
	mc.Generation++
	render()
	if got := names(mc); got != "reported new " {
		t.Errorf("while the report is deferred, also of a newer generation: %q", got)
	}
	another := mc.DeepCopy()
	another.UID = "another"
	if got := names(another); got != "reported " {
		t.Errorf("another MemberCache of the same name: %q", got)
	}
	if got := names(mc); got != "reported " {
		t.Errorf("after another MemberCache: %q", got)
	}
}

func TestRender_StartsOnlyGenerationsWithoutReport(t *testing.T) {
	m, mc := renderer(), memberCache()
	mc.Status.State, mc.Status.ObservedGeneration = v1alpha1.MemberReady, mc.Generation
	state := m.states.get(sessionsKey)
	for _, want := range []int{0, 1} {
		if _, _, err := m.render(state, mc, noon); err != nil {
			t.Fatal(err)
		}
		if n := m.states.startedAfter(noon.Add(-time.Second)); n != want {
			t.Errorf("generation %d: %d started, want %d", mc.Generation, n, want)
		}
		mc.Generation++
	}
}

func TestCacheState_ReportsEachCorrectionOnce(t *testing.T) {
	var state cacheState
	state.keepUnreported([]apply.Change{{Action: apply.Update}, {Action: apply.Correct}})
	state.keepUnreported([]apply.Change{{Action: apply.Create, Deleted: true}})
	if got := state.takeUnreported(nil); len(got) != 2 {
		t.Errorf("%d changes, want the two corrections", len(got))
	}
	if got := state.takeUnreported(nil); len(got) != 0 {
		t.Errorf("%d changes are reported twice", len(got))
	}
}

// The hub accepted the report and its answer was lost: the status shows the correction.
func TestCacheState_DropsCorrectionsThatTheStatusShows(t *testing.T) {
	service := apply.Key{Kind: children.ServiceKind, Name: "sessions"}
	correction := func(after time.Duration) apply.Change {
		return apply.Change{Key: service, Action: apply.Correct, DoneAt: noon.Add(after + 123*time.Nanosecond)}
	}
	reported := &v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: service.String()}, At: metav1.NewMicroTime(noon.Add(2 * time.Second))}
	for name, c := range map[string]struct {
		reported *v1alpha1.Drift
		want     int
	}{
		"two of three": {reported, 1}, "none": {nil, 3},
		"another object":                {&v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: "StatefulSet/sessions"}, At: reported.At}, 3},
		"a correction before all three": {&v1alpha1.Drift{DriftFinding: reported.DriftFinding, At: metav1.NewMicroTime(noon)}, 3},
	} {
		var state cacheState
		state.keepUnreported([]apply.Change{correction(time.Second), correction(2 * time.Second), correction(3 * time.Second)})
		if got := state.takeUnreported(c.reported); len(got) != c.want {
			t.Errorf("the status shows %s: %d corrections to report, want %d", name, len(got), c.want)
		}
	}
}

func TestStates_MeasureCorrectionFromFirstEvent(t *testing.T) {
	var s states
	s.record(sessionsKey, memberqueue.ChildChanged, noon)
	s.record(sessionsKey, memberqueue.ChildChanged, noon.Add(time.Second))
	state := s.get(sessionsKey)
	s.begin(state)
	if !state.arrived.Equal(noon) {
		t.Errorf("from %s", state.arrived)
	}
	// A reconcile that could not work on the event leaves it to the next one.
	s.record(sessionsKey, memberqueue.ChildChanged, noon.Add(time.Minute))
	s.begin(state)
	if !state.arrived.Equal(noon) {
		t.Errorf("after a reconcile that was deferred: from %s", state.arrived)
	}
	state.arrived = time.Time{}
	s.begin(state)
	if !state.arrived.IsZero() {
		t.Errorf("an event that was handled counts again: from %s", state.arrived)
	}
}

func TestStates_ReconnectionResetsBackoff(t *testing.T) {
	var s states
	state := s.get(sessionsKey)
	state.backoff = backoff{class: v1alpha1.ClassBlocked, attempt: attempt{count: 7}}
	s.record(sessionsKey, memberqueue.MemberCacheChanged, noon)
	s.begin(state)
	if !state.backoff.triggered || state.backoff.count != 7 {
		t.Errorf("after an event: %+v", state.backoff)
	}
	s.record(sessionsKey, memberqueue.ConnectionChanged, noon)
	s.record(sessionsKey, memberqueue.MemberCacheChanged, noon)
	s.begin(state)
	if state.backoff.failed() {
		t.Errorf("after a reconnection: %+v", state.backoff)
	}
}

func TestStates_ReportOldestEvent(t *testing.T) {
	var s states
	s.record(sessionsKey, memberqueue.MemberCacheChanged, noon)
	s.record(types.NamespacedName{Name: "younger"}, memberqueue.ChildChanged, noon.Add(time.Second))
	if got := s.oldest(noon.Add(7 * time.Second)); got != 7*time.Second {
		t.Errorf("the oldest event is %s old", got)
	}
	s.begin(s.get(sessionsKey))
	s.forget(types.NamespacedName{Name: "younger"})
	if got := s.oldest(noon.Add(7 * time.Second)); got != 0 {
		t.Errorf("the queue is empty, and the oldest event is %s old", got)
	}
}

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// cacheState is all that the controller remembers of one MemberCache between two
// reconciles. All of it may be lost at a restart; each field's comment names the cost.
type cacheState struct {
	// events is written by event handlers too, so the lock of states guards it.
	events eventState

	// mu is held by the one worker that reconciles the MemberCache, for the time of the
	// reconcile. It guards the fields below against the debug view only.
	mu sync.Mutex
	// uid of the MemberCache; a MemberCache of another UID starts with an empty record.
	uid types.UID
	// arrived is when the first event arrived that no reconcile has handled yet.
	// Loss: one correction is measured from its reconcile instead of its event.
	arrived time.Time
	// intent is the rendered spec. Loss: one rendering.
	intent renderedIntent
	// backoff of the current failure. Loss: none, the status holds count and time.
	backoff backoff
	// conflicts with other controllers, by child. Loss: a conflict that continues is
	// detected again after conflictThreshold corrections.
	conflicts conflictBreaker
	// shortage is the diagnosis of missing pods. Loss: one list of events.
	shortage podShortage
	// lag is since when the member's cache does not show what was applied. Loss: one
	// reconcile after firstLag.
	lag cacheLag
	// unsettledSince is when the StatefulSet began to settle after a correction, or zero.
	// Loss: a StatefulSet that settles is reported as a roll-out.
	unsettledSince time.Time
	// unreported are corrections that are not in the status yet. Loss: lastDrift and its
	// count miss them.
	unreported []apply.Change
	// deferredInventory is the inventory of a report that was deferred; nil if none is.
	// Loss: none, the first reconcile finds the children by their labels again.
	deferredInventory []v1alpha1.InventoryEntry
}

// identify empties the record if it is about a MemberCache of another UID.
func (state *cacheState) identify(uid types.UID) {
	if state.uid == uid {
		return
	}
	state.uid, state.intent, state.backoff, state.conflicts = uid, renderedIntent{}, backoff{}, nil
	state.shortage, state.lag, state.unsettledSince = podShortage{}, cacheLag{}, time.Time{}
	state.unreported, state.deferredInventory = nil, nil
}

// eventState is the part of a cacheState that event handlers, or the workers of other
// MemberCaches, read and write.
type eventState struct {
	// firstEvent is when the first event of a child arrived since the last reconcile
	// began. Loss: as of cacheState.arrived.
	firstEvent time.Time
	// queuedSince is when the MemberCache was queued, or zero. Loss: the metric of the
	// oldest event is too low once.
	queuedSince time.Time
	// trigger of the next reconcile. Loss: a reconcile after an event counts as a retry.
	trigger trigger
	// reportDue is when a deferred report is due, or zero. Loss: events that only change
	// counts cause a reconcile each.
	reportDue time.Time
	// startedAt is when the present generation was first seen, or zero if the status
	// reported it then. Loss: the first report is deferred for less time.
	startedAt time.Time
}

// trigger is what caused a reconcile; the greatest counts.
type trigger int

const (
	// timer is a requeue or a retry.
	timer trigger = iota
	// event is a change of the MemberCache or a child: the reconcile is no retry.
	event
	// reconnection is a change of the member's connection: the backoff starts again.
	reconnection
)

// renderedIntent is what Render and NewDesired return for one generation. Both are pure,
// and most reconciles are about the same generation.
type renderedIntent struct {
	generation int64
	children   apply.Encoded
	problems   []validation.Problem
}

// states holds the record of each MemberCache of one member. The zero value is empty.
type states struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*cacheState
}

// get returns the record of a MemberCache and creates it if there is none.
func (s *states) get(key types.NamespacedName) *cacheState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(key)
}

func (s *states) locked(key types.NamespacedName) *cacheState {
	state := s.byKey[key]
	if state == nil {
		if s.byKey == nil {
			s.byKey = map[types.NamespacedName]*cacheState{}
		}
		state = &cacheState{}
		s.byKey[key] = state
	}
	return state
}

// forget drops the record of a MemberCache that was deleted.
func (s *states) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}

// record notes that a MemberCache is queued because of an event.
func (s *states) record(key types.NamespacedName, t memberqueue.EventType, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.locked(key).events
	if e.queuedSince.IsZero() {
		e.queuedSince = now
	}
	switch t {
	case memberqueue.ConnectionChanged:
		e.trigger = reconnection
		return
	case memberqueue.ChildChanged, memberqueue.StatusChanged:
		if e.firstEvent.IsZero() {
			e.firstEvent = now
		}
	}
	e.trigger = max(e.trigger, event)
}

// deferReport notes that the report of a MemberCache is deferred.
func (s *states) deferReport(state *cacheState, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.events.reportDue = due
}

// reportDeferred reports whether a reconcile is due soon anyway, because of a deferred
// report. A later due time was computed by a clock that was set back since.
func (s *states) reportDeferred(key types.NamespacedName, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.byKey[key]
	return state != nil && state.events.reportDue.After(now) && !state.events.reportDue.After(now.Add(longestReportDelay))
}

// oldest returns the age of the oldest event without a worker.
func (s *states) oldest(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var age time.Duration
	for _, state := range s.byKey {
		if since := state.events.queuedSince; !since.IsZero() {
			age = max(age, now.Sub(since))
		}
	}
	return age
}

// begin moves what the event handlers recorded into the worker's part of the record.
func (s *states) begin(state *cacheState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &state.events
	if state.arrived.IsZero() {
		state.arrived = e.firstEvent
	}
	switch e.trigger {
	case reconnection:
		state.backoff = backoff{}
	case event:
		state.backoff.triggered = true
	}
	e.firstEvent, e.queuedSince, e.reportDue, e.trigger = time.Time{}, time.Time{}, time.Time{}, timer
}

// setStartedAt records when the present generation was first seen; zero if the status
// reported it then.
func (s *states) setStartedAt(state *cacheState, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.events.startedAt = t
}

// startedAt returns when the present generation was first seen, or zero if the
// status reported it then.
func (s *states) startedAt(state *cacheState) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.events.startedAt
}

// startedAfter returns the number of MemberCaches with a generation that was first seen
// after a time and that no status reported then.
func (s *states) startedAfter(t time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.byKey {
		if state.events.startedAt.After(t) {
			n++
		}
	}
	return n
}

// render returns the desired children of a MemberCache, or the problems of its spec. It
// renders them only if the record is about another generation.
func (m *member) render(state *cacheState, mc *v1alpha1.MemberCache, now time.Time) ([]apply.Desired, []validation.Problem, error) {
	if state.intent.generation != mc.Generation || !state.intent.rendered() {
		if err := m.renderGeneration(state, mc, now); err != nil {
			return nil, nil, err
		}
	}
	desired, err := state.intent.children.Decode(m.typer)
	return desired, state.intent.problems, err
}

// renderGeneration renders the present generation into the record.
func (m *member) renderGeneration(state *cacheState, mc *v1alpha1.MemberCache, now time.Time) error {
	children, problems := render.Render(mc)
	desired, err := apply.NewDesired(m.typer, children)
	if err != nil {
		return err
	}
	encoded, err := apply.Encode(desired)
	if err != nil {
		return err
	}
	state.intent = renderedIntent{generation: mc.Generation, children: encoded, problems: problems}
	state.unsettledSince = time.Time{}
	var since time.Time
	if !isReported(mc) {
		since = now
	}
	m.states.setStartedAt(state, since)
	return nil
}

func (i *renderedIntent) rendered() bool { return len(i.children) > 0 || len(i.problems) > 0 }

// isReported reports whether the status is about the present generation.
func isReported(mc *v1alpha1.MemberCache) bool {
	return mc.Status.State != "" && mc.Status.ObservedGeneration == mc.Generation
}

// inventory returns the last inventory: the status's, unless a newer report was deferred.
func (state *cacheState) inventory(mc *v1alpha1.MemberCache) []v1alpha1.InventoryEntry {
	if state.deferredInventory != nil {
		return state.deferredInventory
	}
	return mc.Status.Inventory
}

// keepUnreported keeps corrections whose report the hub did not accept. They are done,
// and no later reconcile would find them.
func (state *cacheState) keepUnreported(changes []apply.Change) {
	for i := range changes {
		if changes[i].Drifted() {
			state.unreported = append(state.unreported, changes[i])
		}
	}
}

// takeUnreported returns these corrections and drops them. reported is the last
// correction in the status: if only the hub's answer was lost, it is one of these, and
// those before it are reported as well.
func (state *cacheState) takeUnreported(reported *v1alpha1.Drift) []apply.Change {
	changes := state.unreported
	state.unreported = nil
	for i := len(changes) - 1; i >= 0 && reported != nil; i-- {
		if changes[i].Key.String() == reported.Object && changes[i].DoneAt.Truncate(time.Microsecond).Equal(reported.At.Truncate(time.Microsecond)) {
			return changes[i+1:]
		}
	}
	return changes
}

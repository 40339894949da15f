package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

var memberScheme = MemberScheme()

type childObject = client.Object

// arrivals notes when the first event of a MemberCache's children arrived that
// was not worked off yet; repair times count from there.
type arrivals struct {
	mu    sync.Mutex
	first map[types.NamespacedName]time.Time
}

func (a *arrivals) note(key types.NamespacedName, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first == nil {
		a.first = map[types.NamespacedName]time.Time{}
	}
	if _, noted := a.first[key]; !noted {
		a.first[key] = now
	}
}

// take gives the noted time, or otherwise.
func (a *arrivals) take(key types.NamespacedName, otherwise time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, noted := a.first[key]
	delete(a.first, key)
	if !noted {
		return otherwise
	}
	return first
}

// unreported keeps repairs whose report the hub did not take, so that the next
// report counts them: they are over and no reconcile would find them again.
type unreported struct {
	mu      sync.Mutex
	changes map[types.NamespacedName][]apply.Change
}

func (u *unreported) put(key types.NamespacedName, changes []apply.Change) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range changes {
		if changes[i].Drifted() {
			if u.changes == nil {
				u.changes = map[types.NamespacedName][]apply.Change{}
			}
			u.changes[key] = append(u.changes[key], changes[i])
		}
	}
}

// take gives them, and forgets them. told is the last repair that the status shows:
// where only the hub's answer was lost it is one of these, and those before it are
// told as well.
func (u *unreported) take(key types.NamespacedName, told *v1alpha1.Drift) []apply.Change {
	u.mu.Lock()
	defer u.mu.Unlock()
	changes := u.changes[key]
	delete(u.changes, key)
	for i := len(changes) - 1; i >= 0 && told != nil; i-- {
		if changes[i].Key.String() == told.Object && changes[i].DoneAt.Truncate(time.Microsecond).Equal(told.At.Truncate(time.Microsecond)) {
			return changes[i+1:]
		}
	}
	return changes
}

// memo keeps what Render and Desire gave for a MemberCache's generation: they are
// pure, and most reconciles are about the same one.
type memo struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]remembered
}

type remembered struct {
	uid        types.UID
	generation int64
	desired    []apply.Desired
	problems   []render.Problem
	// since is when the generation was seen first, if the status did not tell of it then;
	// ripples when it began to ripple.
	since, ripples time.Time
	// untold is the inventory of a report that was put off; nil if none is.
	untold []v1alpha1.InventoryEntry
}

func (m *memo) desire(typer drift.Typer, mc *v1alpha1.MemberCache, now time.Time) ([]apply.Desired, []render.Problem, error) {
	key := client.ObjectKeyFromObject(mc)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.uid == mc.UID && e.generation == mc.Generation {
		return e.desired, e.problems, nil
	}
	children, problems := render.Render(mc)
	desired, err := apply.NewDesired(typer, children)
	if err != nil {
		return nil, nil, err
	}
	if m.entries == nil {
		m.entries = map[types.NamespacedName]remembered{}
	}
	next := remembered{uid: mc.UID, generation: mc.Generation, desired: desired, problems: problems}
	if !tells(mc) {
		next.since = now
	}
	if e := m.entries[key]; e.uid == mc.UID {
		next.untold = e.untold
	}
	m.entries[key] = next
	return desired, problems, nil
}

// tells says that a status is about the present generation.
func tells(mc *v1alpha1.MemberCache) bool {
	return mc.Status.State != "" && mc.Status.ObservedGeneration == mc.Generation
}

// inventory is what was found last: the status's, unless a newer report was put off.
func (m *memo) inventory(mc *v1alpha1.MemberCache) []v1alpha1.InventoryEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[client.ObjectKeyFromObject(mc)]; e.uid == mc.UID && e.untold != nil {
		return e.untold
	}
	return mc.Status.Inventory
}

// putOff keeps the inventory of a report until it is made; nil: it was.
func (m *memo) putOff(key types.NamespacedName, inventory []v1alpha1.InventoryEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok {
		e.untold = inventory
		m.entries[key] = e
	}
}

// since is when the present generation was seen first, or zero if that is told.
func (m *memo) since(key types.NamespacedName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[key].since
}

// begun counts the generations that were seen first after a time, and of which no
// status told then.
func (m *memo) begun(after time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.since.After(after) {
			n++
		}
	}
	return n
}

// rippling notes whether a cache ripples and gives since when, or zero.
func (m *memo) rippling(key types.NamespacedName, is bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok {
		return time.Time{}
	}
	switch {
	case !is:
		e.ripples = time.Time{}
	case e.ripples.IsZero():
		e.ripples = now
	}
	m.entries[key] = e
	return e.ripples
}

func (m *memo) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}

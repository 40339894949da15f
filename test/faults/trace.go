package faults

import (
	"sync"
	"sync/atomic"
	"time"
)

// Trace is what the manager did in one namespace, and the fault that is to meet it
// there.
type Trace struct {
	mu      sync.Mutex
	begun   bool
	met     map[Place]int
	entries []Entry
	armed   *Case
	hit     time.Time
	// dead reports that the process was killed for this namespace.
	dead bool
	// held counts delayed events and faults that have not ended.
	held int
	// flying counts requests without an answer yet.
	flying    int
	lastWrite time.Time
	writes    int
}

// Entry is one request or event.
type Entry struct {
	At    time.Time
	Point Point
	// Fault that was injected, or empty.
	Fault Fault
	// Took and Code of a request that was answered.
	Took time.Duration
	Code int
}

// Begin starts the count: what was met before was the setting up.
func (t *Trace) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.met, t.entries, t.writes = true, map[Place]int{}, nil, 0
	t.lastWrite = time.Now()
}

// Arm has a fault met at its point.
func (t *Trace) Arm(c Case) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = &c
}

// Revive records that another process works in the namespace. A fault that the earlier
// process did not meet is not injected.
func (t *Trace) Revive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = false
	if t.hit.IsZero() {
		t.armed = nil
	}
}

// meet counts a place and returns the fault to inject, if any. A request of a process
// that is dead is not counted.
func (t *Trace) meet(p Place) (entry int, f Fault, dead bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return -1, "", true
	}
	if !t.begun {
		return -1, "", false
	}
	t.met[p]++
	point := Point{p, t.met[p]}
	if t.armed != nil && t.hit.IsZero() && t.armed.Point == point {
		f, t.hit = t.armed.Fault, time.Now()
		t.dead = f == KillBefore
	}
	t.entries = append(t.entries, Entry{At: time.Now(), Point: point, Fault: f})
	return len(t.entries) - 1, f, t.dead
}

// sent notes that a request goes to the API server.
func (t *Trace) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying++
}

// carried notes that the API server answered a request, or, with code 0, that it did
// not.
func (t *Trace) carried(entry int, p Place, code int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying--
	if p.Mutates() {
		t.lastWrite = time.Now()
	}
	if p.Mutates() && code > 0 && code < 300 {
		t.writes++
	}
	if entry >= 0 && entry < len(t.entries) && t.entries[entry].Point.Place == p {
		t.entries[entry].Code, t.entries[entry].Took = code, took
	}
}

// kill ends a process for the namespace, unless it was killed for all namespaces in the
// meantime and another one works already.
func (t *Trace) kill(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = t.dead || !p.dead.Load()
}

func (t *Trace) hold(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held += n
}

// Case returns the case that is armed, or nil.
func (t *Trace) Case() *Case {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.armed
}

// Fault returns the fault that is armed, or "".
func (t *Trace) Fault() Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.armed == nil {
		return ""
	}
	return t.armed.Fault
}

// Hit is when the fault was injected, or zero.
func (t *Trace) Hit() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hit
}

// Quiet is how long nothing was tried to be written and no event has been delayed.
func (t *Trace) Quiet() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held > 0 || t.flying > 0 || t.dead {
		return 0
	}
	return time.Since(t.lastWrite)
}

// Writes are the mutating requests that the API servers carried out.
func (t *Trace) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// Entries so far.
func (t *Trace) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Entry(nil), t.entries...)
}

func (t *Trace) lastPoint() string {
	entries := t.Entries()
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Point.Mutates() {
			return entries[i].Point.String()
		}
	}
	return ""
}

// Points that were met.
func (t *Trace) Points() []Point {
	var points []Point
	for _, e := range t.Entries() {
		points = append(points, e.Point)
	}
	return points
}

// Board finds the trace of a namespace. The zero value has none.
type Board struct {
	// WatchLog has all watches, which are numbered.
	WatchLog WatchLog
	watches  atomic.Int64

	mu     sync.RWMutex
	traces map[string]*Trace
	lies   map[string]lie
}

// lie is what a server does for a while: every nth request meets the fault.
type lie struct {
	fault Fault
	every int
	until time.Time
	met   *int
}

// Lie has every nth request to a server meet a fault for a while, probes included;
// watches are left alone.
func (b *Board) Lie(server string, f Fault, every int, how time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lies == nil {
		b.lies = map[string]lie{}
	}
	b.lies[server] = lie{fault: f, every: every, until: time.Now().Add(how), met: new(int)}
}

// Truth ends all lies.
func (b *Board) Truth() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lies = nil
}

func (b *Board) lied(server string) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lies[server]
	if !ok || time.Now().After(l.until) {
		return ""
	}
	if *l.met++; *l.met%l.every != 0 {
		return ""
	}
	return l.fault
}

// Open starts a trace of a namespace.
func (b *Board) Open(namespace string) *Trace {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.traces == nil {
		b.traces = map[string]*Trace{}
	}
	t := &Trace{lastWrite: time.Now()}
	b.traces[namespace] = t
	return t
}

// Close drops a namespace's trace.
func (b *Board) Close(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.traces, namespace)
}

func (b *Board) find(namespace string) *Trace {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.traces[namespace]
}

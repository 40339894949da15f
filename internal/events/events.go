// Package events records status transitions as Kubernetes Events.
//
// An event is recorded only after its transition was saved in a status, so that a repeated
// reconcile does not repeat it. Events with the same object, reason and note form a series.
// A series costs one write at the second event and then one every 30 minutes.
//
// Each object has a budget, so that an object that flaps does not flood its namespace.
// Events beyond the budget are counted and dropped: the status has the same information.
//
// The package keeps no state that matters: after a restart an event may be repeated.
package events

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Event is one transition.
type Event struct {
	// Warning marks an event that needs a user to act. Other events are Normal.
	Warning bool
	// Reason is one of the documented reasons.
	Reason string
	// Action is the operation of the controller.
	Action string
	// Note is the message for users.
	Note string
}

// Recorder is the interface events.EventRecorder of client-go.
type Recorder interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any)
}

const (
	// Burst is the number of events of one object that are recorded without delay.
	Burst = 10
	// Interval is the time after which the budget of an object grows by one event.
	Interval = time.Minute
)

// maxNote is the limit of the API server in bytes, minus space for an ellipsis.
const maxNote = 1000

// Sink records events within the budget of each object. The zero value drops all events.
type Sink struct {
	recorder Recorder

	mu      sync.Mutex
	budgets map[types.UID]*rate.Limiter
}

// NewSink returns a Sink that writes to a recorder.
func NewSink(recorder Recorder) *Sink {
	return &Sink{recorder: recorder, budgets: map[types.UID]*rate.Limiter{}}
}

var recorded = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "reconcile_lab", Name: "events_total",
	Help: "Events by result: recorded, or dropped because the budget of the object is used up.",
}, []string{"result"})

func init() { metrics.Registry.MustRegister(recorded) }

// Record records events about an object at the time now. The reference must not contain a
// resource version: events about two versions do not form a series.
func (s *Sink) Record(now time.Time, object corev1.ObjectReference, events ...Event) {
	if s == nil || s.recorder == nil {
		return
	}
	for _, e := range events {
		if !s.budget(object.UID).AllowN(now, 1) {
			recorded.WithLabelValues("dropped").Inc()
			continue
		}
		recorded.WithLabelValues("recorded").Inc()
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		// client-go ignores the note when it aggregates events to a series, and keeps the
		// first note. The digest in the reference prevents that a new note is lost.
		object.FieldPath = "status" + digest(e.Note)
		s.recorder.Eventf(&object, nil, kind, e.Reason, e.Action, "%s", truncate(e.Note))
	}
}

func (s *Sink) budget(uid types.UID) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter, ok := s.budgets[uid]
	if !ok {
		limiter = rate.NewLimiter(rate.Every(Interval), Burst)
		s.budgets[uid] = limiter
	}
	return limiter
}

// Forget deletes the budget of a deleted object.
func (s *Sink) Forget(uid types.UID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.budgets, uid)
}

// digest returns the hash of a note in the form of an index of a field path.
func digest(note string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(note))
	return fmt.Sprintf("{%08x}", h.Sum32())
}

// truncate returns the note with at most maxNote bytes and no incomplete character.
func truncate(note string) string {
	if len(note) <= maxNote {
		return note
	}
	end := maxNote
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + "…"
}

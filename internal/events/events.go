// Package events records transitions for people, as Kubernetes Events.
//
// An event is recorded only for a change that was saved in a status, so that a
// reconcile which is repeated records it once. The same event of the same object, note
// included, becomes a series, which costs one write at its second time and then one in half
// an hour; and each object has a budget, so that one that flaps does not flood its
// namespace. What goes over it is counted and dropped: the status says the same.
//
// It keeps no state that matters: losing it costs at most a repeated event.
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
	// Warning asks somebody to act; otherwise the event is Normal.
	Warning bool
	// Reason from the documented list, and Action: what the controller did then.
	Reason, Action string
	// Note for people.
	Note string
}

// Recorder is client-go's events.EventRecorder.
type Recorder interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any)
}

// Burst events of one object are recorded at once, and then one in each Interval.
const (
	Burst    = 10
	Interval = time.Minute
)

// maxNote is what the API server takes, less room for the mark of a cut.
const maxNote = 1000

// Sink records events within the budgets. The zero value drops everything.
type Sink struct {
	recorder Recorder

	mu      sync.Mutex
	budgets map[types.UID]*rate.Limiter
}

// NewSink records through a recorder.
func NewSink(recorder Recorder) *Sink {
	return &Sink{recorder: recorder, budgets: map[types.UID]*rate.Limiter{}}
}

var recorded = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "reconcile_lab", Name: "events_total",
	Help: "Events by what became of them: recorded, or dropped because the object's budget was used up.",
}, []string{"result"})

func init() { metrics.Registry.MustRegister(recorded) }

// Record records events about an object, at the time now. The reference should
// hold no resource version: events about two versions would not form a series.
func (s *Sink) Record(now time.Time, about corev1.ObjectReference, events ...Event) {
	if s == nil || s.recorder == nil {
		return
	}
	for _, e := range events {
		if !s.budget(about.UID).AllowN(now, 1) {
			recorded.WithLabelValues("dropped").Inc()
			continue
		}
		recorded.WithLabelValues("recorded").Inc()
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		// client-go folds events that differ in nothing but their note into one series,
		// which keeps the first note: what is told must be part of what is told about.
		about.FieldPath = "status" + digest(e.Note)
		s.recorder.Eventf(&about, nil, kind, e.Reason, e.Action, "%s", cut(e.Note))
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

// Forget drops the budget of an object that is gone.
func (s *Sink) Forget(uid types.UID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.budgets, uid)
}

// digest of a note, in the form of a field path's index.
func digest(note string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(note))
	return fmt.Sprintf("{%08x}", h.Sum32())
}

func cut(note string) string {
	if len(note) <= maxNote {
		return note
	}
	end := maxNote
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + "…"
}

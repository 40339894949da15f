package events

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// fakeRecorder stores the events that it receives.
type fakeRecorder struct{ lines, notes, paths []string }

func (f *fakeRecorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	reference, _ := regarding.(*corev1.ObjectReference)
	text := fmt.Sprintf(note, args...)
	f.lines = append(f.lines, strings.Join([]string{reference.Name, kind, reason, action}, " "))
	f.notes = append(f.notes, text)
	f.paths = append(f.paths, reference.FieldPath)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func object(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "MemberCache", Name: name, UID: types.UID(name)}
}

func TestRecord_DoesNotFormatNote(t *testing.T) {
	recorder := &fakeRecorder{}
	NewSink(recorder).Record(noon, object("a"), Event{Warning: true, Reason: "Forbidden", Action: "Apply", Note: "100% forbidden"}, Event{Reason: "Recovered", Action: "Apply"})
	if diff := cmp.Diff([]string{"a Warning Forbidden Apply", "a Normal Recovered Apply"}, recorder.lines); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if recorder.notes[0] != "100% forbidden" {
		t.Errorf("note %q, want %q: a percent sign in a note is not a verb", recorder.notes[0], "100% forbidden")
	}
}

// client-go aggregates events with the same object, field path and reason to a series, which
// shows only the first note.
func TestRecord_KeepsEventsWithDifferentNotesApart(t *testing.T) {
	recorder := &fakeRecorder{}
	s := NewSink(recorder)
	for _, note := range []string{"image changed", "replicas changed", "image changed"} {
		s.Record(noon, object("a"), Event{Reason: "DriftReported", Note: note})
	}
	if recorder.paths[0] == recorder.paths[1] || recorder.paths[0] != recorder.paths[2] {
		t.Errorf("field paths %q, want equal ones only for equal notes", recorder.paths)
	}
}

func TestRecord_LimitsEventsOfEachObject(t *testing.T) {
	recorder := &fakeRecorder{}
	s := NewSink(recorder)
	for range 3 * Burst {
		s.Record(noon, object("flaps"), Event{Reason: "Forbidden"})
	}
	s.Record(noon, object("quiet"), Event{Reason: "Forbidden"})
	if got := len(recorder.lines); got != Burst+1 {
		t.Errorf("%d events are recorded, want %d of the first object and 1 of the second", got, Burst)
	}
	s.Record(noon.Add(2*Interval), object("flaps"), Event{}, Event{}, Event{})
	if got := len(recorder.lines); got != Burst+3 {
		t.Errorf("%d more events are recorded two intervals later, want 2", got-Burst-1)
	}
	s.Forget("flaps")
	if len(s.budgets) != 1 {
		t.Errorf("%d budgets remain, want only the one of the second object", len(s.budgets))
	}
}

func TestRecord_TruncatesNoteBetweenCharacters(t *testing.T) {
	recorder := &fakeRecorder{}
	NewSink(recorder).Record(noon, object("a"), Event{Note: "x" + strings.Repeat("界", 500)})
	if got := recorder.notes[0]; len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("note has %d bytes, valid UTF-8: %t; want at most 1024 valid bytes", len(got), utf8.ValidString(got))
	}
}

func TestSink_IgnoresEventsWithoutRecorder(*testing.T) {
	var s *Sink
	s.Record(noon, object("a"), Event{})
	s.Forget("a")
}

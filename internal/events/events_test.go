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

type notebook struct{ lines, notes, parts []string }

func (n *notebook) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	about, _ := regarding.(*corev1.ObjectReference)
	text := fmt.Sprintf(note, args...)
	n.lines = append(n.lines, strings.Join([]string{about.Name, kind, reason, action}, " "))
	n.notes = append(n.notes, text)
	n.parts = append(n.parts, about.FieldPath)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func about(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "MemberCache", Name: name, UID: types.UID(name)}
}

func TestAnEventIsRecordedAsItIs(t *testing.T) {
	n := &notebook{}
	NewSink(n).Record(noon, about("a"), Event{Warning: true, Reason: "Forbidden", Action: "Apply", Note: "100% forbidden"}, Event{Reason: "Recovered", Action: "Apply"})
	if diff := cmp.Diff([]string{"a Warning Forbidden Apply", "a Normal Recovered Apply"}, n.lines); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if n.notes[0] != "100% forbidden" {
		t.Errorf("a percent sign was taken for a verb: %q", n.notes[0])
	}
}

// client-go takes events that are about the same part of the same object, for the
// same reason, for one series, and shows the first note of it.
func TestEventsOfAnotherNoteAreNoSeries(t *testing.T) {
	n := &notebook{}
	s := NewSink(n)
	for _, note := range []string{"image changed", "replicas changed", "image changed"} {
		s.Record(noon, about("a"), Event{Reason: "DriftReported", Note: note})
	}
	if n.parts[0] == n.parts[1] || n.parts[0] != n.parts[2] {
		t.Errorf("they are about %q", n.parts)
	}
}

func TestAnObjectThatFlapsSpendsItsOwnBudgetOnly(t *testing.T) {
	n := &notebook{}
	s := NewSink(n)
	for range 3 * Burst {
		s.Record(noon, about("flaps"), Event{Reason: "Forbidden"})
	}
	s.Record(noon, about("quiet"), Event{Reason: "Forbidden"})
	if got := len(n.lines); got != Burst+1 {
		t.Errorf("%d events were recorded, want %d of the one and 1 of the other", got, Burst)
	}
	s.Record(noon.Add(2*Interval), about("flaps"), Event{}, Event{}, Event{})
	if got := len(n.lines); got != Burst+3 {
		t.Errorf("%d more were recorded two intervals later, want 2", got-Burst-1)
	}
	s.Forget("flaps")
	if len(s.budgets) != 1 {
		t.Errorf("%d budgets are kept, want that of the other object", len(s.budgets))
	}
}

func TestALongNoteIsCutBetweenCharacters(t *testing.T) {
	n := &notebook{}
	NewSink(n).Record(noon, about("a"), Event{Note: "x" + strings.Repeat("界", 500)})
	if got := n.notes[0]; len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
}

func TestNothingHappensWithoutARecorder(*testing.T) {
	var s *Sink
	s.Record(noon, about("a"), Event{})
	s.Forget("a")
}

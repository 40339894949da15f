package faults

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Diary holds what the watches of the manager came to show of late: where each began and
// why it ended, and every event with its version, whatever became of it. A trace has only
// what was counted; of an event that never came, it says nothing.
type Diary struct {
	mu    sync.Mutex
	lines []diaryLine
}

type diaryLine struct {
	at time.Time
	// namespace of an event; empty for what concerns a whole watch.
	namespace, text string
}

// diaryLength is how many lines are kept, some minutes of a whole fleet.
const diaryLength = 200_000

func (d *Diary) note(namespace, format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, diaryLine{time.Now(), namespace, fmt.Sprintf(format, a...)})
	if len(d.lines) >= 2*diaryLength {
		d.lines = append([]diaryLine(nil), d.lines[diaryLength:]...)
	}
}

// About gives what concerns a namespace, and the beginnings and ends of watches, from a
// moment on; times are seconds from there.
func (d *Diary) About(namespace string, from time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text strings.Builder
	for _, l := range d.lines {
		if l.at.Before(from) || l.namespace != "" && l.namespace != namespace {
			continue
		}
		fmt.Fprintf(&text, "%7.3f %s\n", l.at.Sub(from).Seconds(), l.text)
	}
	return text.String()
}

package faults

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// WatchLog has the latest lines about the manager's watches: the begin and the end of each
// with its cause, and every event with its version. A Trace has only events that were
// counted, so it cannot show an event that never came.
type WatchLog struct {
	mu    sync.Mutex
	lines []watchLine
}

type watchLine struct {
	at time.Time
	// namespace is that of the event, or "" for a line about the whole watch.
	namespace, text string
}

// watchLogLength is the number of lines that are kept: some minutes of a whole fleet.
const watchLogLength = 200_000

func (d *WatchLog) note(namespace, format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, watchLine{time.Now(), namespace, fmt.Sprintf(format, a...)})
	if len(d.lines) >= 2*watchLogLength {
		d.lines = append([]watchLine(nil), d.lines[watchLogLength:]...)
	}
}

// About returns the lines of a namespace and of whole watches since a time. Times are
// seconds since then.
func (d *WatchLog) About(namespace string, from time.Time) string {
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

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// labProgress shows the present step of each cluster of a lab. On a terminal each
// row has the duration of its step.
type labProgress struct {
	start time.Time
	stop  chan struct{}
	ended chan struct{}

	// mu guards the fields below: clusters report concurrently.
	mu       sync.Mutex
	view     *progressView
	subjects []string
	steps    map[string]labStep
}

type labStep struct {
	text  string
	since time.Time
	done  bool
}

func newLabProgress(w io.Writer) *labProgress {
	p := &labProgress{start: time.Now(), view: newProgressView(w), steps: map[string]labStep{}, stop: make(chan struct{}), ended: make(chan struct{})}
	p.view.linePrefix = func() string { return fmt.Sprintf("[%5.1fs] ", time.Since(p.start).Seconds()) }
	go p.redraw()
	return p
}

// report records the present step of a cluster. It implements lab.Report.
func (p *labProgress) report(subject, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if subject == "" {
		subject = "lab"
	}
	last, known := p.steps[subject]
	if known && last.text == step {
		return
	}
	if !known {
		p.subjects = append(p.subjects, subject)
		slices.SortFunc(p.subjects, func(a, b string) int {
			return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
		})
	}
	p.steps[subject] = labStep{text: step, since: time.Now(), done: step == lab.Done || step == lab.Removed}
	p.view.update(p.rows())
}

// rank sorts the lab and its hub before the members, and member-9 before member-10.
func rank(subject string) int {
	switch subject {
	case "lab":
		return 0
	case lab.Hub:
		return 1
	}
	return 1 + len(subject)
}

func (p *labProgress) rows() []progressRow {
	rows := make([]progressRow, 0, len(p.subjects))
	for _, subject := range p.subjects {
		step := p.steps[subject]
		row := progressRow{subject: subject, text: subject + ": " + oneLine(step.text)}
		if waited := time.Since(step.since); !step.done && waited >= time.Second {
			row.suffix = " (" + waited.Round(time.Second).String() + ")"
		}
		rows = append(rows, row)
	}
	return rows
}

// close ends the progress. The last state stays on the screen.
func (p *labProgress) close() {
	close(p.stop)
	<-p.ended
}

// redraw keeps the durations of the steps current.
func (p *labProgress) redraw() {
	defer close(p.ended)
	if !p.view.isTerminal() {
		return
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.mu.Lock()
			p.view.update(p.rows())
			p.mu.Unlock()
		case <-p.stop:
			return
		}
	}
}

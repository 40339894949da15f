package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// labProgress shows what is done for each cluster of a lab: on a terminal a block
// with one line each that is drawn again and again, elsewhere a line per step.
type labProgress struct {
	out   io.Writer
	live  bool
	width int
	start time.Time
	stop  chan struct{}
	ended chan struct{}

	mu       sync.Mutex
	subjects []string
	steps    map[string]labStep
	drawn    int
}

type labStep struct {
	text  string
	since time.Time
	done  bool
}

func newProgress(out io.Writer) *labProgress {
	p := &labProgress{out: out, start: time.Now(), steps: map[string]labStep{}, stop: make(chan struct{}), ended: make(chan struct{})}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 20 {
			p.live, p.width = true, width
		}
	}
	go p.tick()
	return p
}

// report is what lab.Options asks for.
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
	if !p.live {
		fmt.Fprintf(p.out, "%s %s: %s\n", stamp(time.Since(p.start)), subject, step)
	}
}

// rank puts the lab and its hub above the members, and member-10 below member-9.
func rank(subject string) int {
	switch subject {
	case "lab":
		return 0
	case lab.Hub:
		return 1
	}
	return 1 + len(subject)
}

// close leaves the last state on the screen.
func (p *labProgress) close() {
	close(p.stop)
	<-p.ended
}

func (p *labProgress) tick() {
	defer close(p.ended)
	if !p.live {
		return
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.draw()
		case <-p.stop:
			p.draw()
			return
		}
	}
}

func (p *labProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for _, subject := range p.subjects {
		step := p.steps[subject]
		line := fmt.Sprintf("%-12s %s", subject, oneLine(step.text))
		if waited := time.Since(step.since); !step.done && waited >= time.Second {
			line += " (" + waited.Round(time.Second).String() + ")"
		}
		if runes := []rune(line); len(runes) >= p.width {
			line = string(runes[:p.width-1])
		}
		// Clears the rest of a longer line before it.
		b.WriteString(line + "\x1b[K\n")
	}
	p.drawn = len(p.subjects)
	_, _ = io.WriteString(p.out, b.String())
}

// stamp is the time since the start, for logs.
func stamp(d time.Duration) string { return fmt.Sprintf("[%5.1fs]", d.Seconds()) }

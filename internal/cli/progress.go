package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progressView renders the progress of several subjects. On a terminal it redraws
// one row per subject in place. Elsewhere it prints one line per change.
type progressView struct {
	w io.Writer
	// size returns the size of the terminal; nil if w is not a terminal.
	size func() (width, height int)
	// linePrefix returns the start of each printed line, such as a timestamp; nil
	// prints none. Rows on a terminal have no prefix.
	linePrefix func() string
	printed    map[string]string // last printed text by subject
	drawn      []string          // rows on the terminal
}

// progressRow is the present state of one subject.
type progressRow struct {
	subject, text string
	// suffix is only drawn on a terminal, where it may change on every redraw.
	suffix string
}

func newProgressView(w io.Writer) *progressView {
	v := &progressView{w: w, printed: map[string]string{}}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		v.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
	}
	return v
}

func (v *progressView) isTerminal() bool { return v.size != nil }

// update renders the rows, in their order.
func (v *progressView) update(rows []progressRow) {
	if v.isTerminal() {
		v.draw(v.layout(rows))
		return
	}
	for _, r := range rows {
		if v.printed[r.subject] == r.text {
			continue
		}
		v.printed[r.subject] = r.text
		prefix := ""
		if v.linePrefix != nil {
			prefix = v.linePrefix()
		}
		fmt.Fprintln(v.w, prefix+r.text)
	}
}

// layout fits the rows into the terminal: more rows than its height would scroll,
// and could not be redrawn.
func (v *progressView) layout(rows []progressRow) []string {
	width, height := v.size()
	lines := make([]string, 0, len(rows))
	for i, r := range rows {
		if i == height-2 && len(rows) > height-1 {
			return append(lines, fmt.Sprintf("… and %d more", len(rows)-i))
		}
		lines = append(lines, truncate(r.text+r.suffix, width-1))
	}
	return lines
}

// draw replaces the rows on the terminal. It rewrites changed rows only, since
// rewriting all of them flickers.
func (v *progressView) draw(lines []string) {
	if len(lines) != len(v.drawn) {
		v.clear()
		for _, line := range lines {
			fmt.Fprintln(v.w, line)
		}
		v.drawn = lines
		return
	}
	for i, line := range lines {
		if up := len(lines) - i; line != v.drawn[i] {
			fmt.Fprintf(v.w, "\x1b[%dA\r%s\x1b[K\x1b[%dB\r", up, line, up)
		}
	}
	v.drawn = lines
}

// clear removes the rows from the terminal, so that plain lines can follow.
func (v *progressView) clear() {
	if len(v.drawn) > 0 {
		fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", len(v.drawn))
		v.drawn = nil
	}
}

func truncate(s string, width int) string {
	r := []rune(s)
	if width < 1 || len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}

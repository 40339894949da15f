package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// board shows the progress of several things: redrawn in place on a terminal, a
// line for each change otherwise.
type board struct {
	w io.Writer
	// size of the terminal; nil if w is none.
	size  func() (width, height int)
	shown map[string]string
	drawn []string // rows on the terminal now
}

// boardLine is the present state of one thing.
type boardLine struct{ key, text string }

func newBoard(w io.Writer) *board {
	b := &board{w: w, shown: map[string]string{}}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		b.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
	}
	return b
}

func (b *board) update(lines []boardLine) {
	if b.size == nil {
		for _, l := range lines {
			if b.shown[l.key] != l.text {
				fmt.Fprintln(b.w, l.text)
				b.shown[l.key] = l.text
			}
		}
		return
	}
	width, height := b.size()
	rows := make([]string, 0, len(lines))
	for i, l := range lines {
		// A board taller than the terminal would scroll and could not be redrawn.
		if i == height-2 && len(lines) > height-1 {
			rows = append(rows, fmt.Sprintf("… and %d more", len(lines)-i))
			break
		}
		rows = append(rows, truncate(l.text, width-1))
	}
	if len(rows) != len(b.drawn) {
		b.clear()
		for _, row := range rows {
			fmt.Fprintln(b.w, row)
		}
		b.drawn = rows
		return
	}
	// In place, and only what is new: redrawing all of it flickers.
	for i, row := range rows {
		if up := len(rows) - i; row != b.drawn[i] {
			fmt.Fprintf(b.w, "\x1b[%dA\r%s\x1b[K\x1b[%dB\r", up, row, up)
		}
	}
	b.drawn = rows
}

// clear removes what is drawn, so that plain lines can follow.
func (b *board) clear() {
	if len(b.drawn) > 0 {
		fmt.Fprintf(b.w, "\x1b[%dA\x1b[J", len(b.drawn))
		b.drawn = nil
	}
}

func truncate(s string, width int) string {
	r := []rune(s)
	if width < 1 || len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}

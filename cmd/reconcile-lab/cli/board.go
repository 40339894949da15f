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
	drawn int // lines on the terminal now
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
	b.clear()
	for i, l := range lines {
		// A board taller than the terminal would scroll and could not be redrawn.
		if i == height-2 && len(lines) > height-1 {
			fmt.Fprintf(b.w, "… and %d more\n", len(lines)-i)
			b.drawn++
			break
		}
		fmt.Fprintln(b.w, truncate(l.text, width-1))
		b.drawn++
	}
}

// clear removes what is drawn, so that plain lines can follow.
func (b *board) clear() {
	if b.drawn > 0 {
		fmt.Fprintf(b.w, "\x1b[%dA\x1b[J", b.drawn)
		b.drawn = 0
	}
}

func truncate(s string, width int) string {
	r := []rune(s)
	if width < 1 || len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}

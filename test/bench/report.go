package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Units of figures.
const (
	seconds      = "s"
	milliseconds = "ms"
	megabytes    = "MB"
	requests     = "requests"
)

// figure is one result. Goal is an upper bound, 0 where there is none but for
// requests, of which there shall be none.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Goal  float64 `json:"goal,omitempty"`
}

type report struct {
	Figures []figure `json:"figures"`
}

func (r *report) add(name, unit string, value, goal float64) {
	r.Figures = append(r.Figures, figure{name, value, unit, goal})
}

func (r *report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURE\tFIGURE\tGOAL")
	for _, f := range r.Figures {
		goal := ""
		switch {
		case f.Goal > 0:
			goal = fmt.Sprintf("under %g %s", f.Goal, f.Unit)
		case f.Unit == requests && strings.HasPrefix(f.Name, "writes of the manager"):
			goal = "0"
		}
		fmt.Fprintf(table, "%s\t%s %s\t%s\n", f.Name, rounded(f.Value), f.Unit, goal)
	}
	_ = table.Flush()
}

// rounded keeps one digit after the point where there is something to see.
func rounded(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func (r *report) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// quantile of durations, by nearest rank: the least that a share q of all does
// not exceed. 0 if there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// structured says whether output is for programs.
func (a *app) structured() bool { return a.output.value == "json" || a.output.value == "yaml" }

// printValue prints v as -o asks. In a stream, JSON takes one line for each
// value and YAML one document.
func (a *app) printValue(v any, stream bool) error {
	if a.output.value == "yaml" {
		data, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		if stream {
			data = append([]byte("---\n"), data...)
		}
		_, err = a.out.Write(data)
		return err
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if !stream {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// table prints rows under a header in kubectl's manner. It escapes nothing: the
// API server allows no control characters in what is printed here, but for
// messages, which lose them in oneLine.
func table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, r := range rows {
		for i, cell := range r {
			if cell == "" {
				r[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// age is how long ago t was, in kubectl's short form; empty if never.
func age(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// oneLine keeps messages from members from breaking or faking lines of ours.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// plural is "1 member" or "3 members".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

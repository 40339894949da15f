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

// structured reports whether -o asks for JSON or YAML.
func (a *app) structured() bool { return a.output.value == "json" || a.output.value == "yaml" }

// printValue prints v as -o asks. In a stream, each value is one line of JSON or one
// document of YAML.
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

// table prints rows below a header, as kubectl does. It escapes nothing: the API
// server allows no control characters in these values. Only messages may have some,
// and oneLine removes them.
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

// age returns the time since t in kubectl's short form, and "" for a zero t.
func age(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// oneLine replaces control characters, so that a message from a member can neither
// break a line nor fake one.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// plural returns such as "1 member" or "3 members".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

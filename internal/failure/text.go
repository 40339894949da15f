package failure

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

const maxMessage = 400

// volatile is what differs from one failure to the next of the same kind; left in,
// it would turn one failure into a stream of writes.
var volatile = []struct {
	what *regexp.Regexp
	by   string
}{
	// client-go tells of the try before, which may have failed otherwise.
	{regexp.MustCompile(` - error from a previous attempt: .*`), ""},
	{regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d+`), "(address)"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?(Z|[+-]\d{2}:?\d{2}))?`), "(time)"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "(id)"},
	{regexp.MustCompile(`\b\d+\.\d+(ns|µs|us|ms|s)\b`), "(duration)"},
	{regexp.MustCompile(`\b(stream ID |LastStreamID=|resource version: |0x)[0-9a-f]+( \(\d+\))?`), "$1(n)"},
	// A quota's use, which others change.
	{regexp.MustCompile(`, used: .*?, limited: `), ", limited: "},
}

// stable is an error's text without what changes from one try to the next.
func stable(err error) string {
	if err == nil {
		return ""
	}
	return Stable(err.Error())
}

// Stable is a text of a member's in a line, without what changes from one time to
// the next, and cut.
func Stable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.by)
	}
	if len(text) > maxMessage {
		// Cut between characters: JSON would turn half a one into another, and the
		// saved status would never equal the next one.
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// withoutAddress is what went wrong with a request, without its method and URL.
func withoutAddress(err error) error {
	var link *url.Error
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

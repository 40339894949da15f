package failure

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// maxMessage is the length of a stable text in bytes.
const maxMessage = 400

// volatile are the parts of a text that differ between retries of the same failure. Each
// difference would be a write to the hub.
var volatile = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	// client-go appends the error of the previous attempt, which may have another cause.
	{regexp.MustCompile(` - error from a previous attempt: .*`), ""},
	{regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d+`), "(address)"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?(Z|[+-]\d{2}:?\d{2}))?`), "(time)"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "(id)"},
	{regexp.MustCompile(`\b\d+\.\d+(ns|µs|us|ms|s)\b`), "(duration)"},
	{regexp.MustCompile(`\b(stream ID |LastStreamID=|resource version: |0x)[0-9a-f]+( \(\d+\))?`), "$1(n)"},
	// Other clients change the used amount of a quota.
	{regexp.MustCompile(`, used: .*?, limited: `), ", limited: "},
}

// stable returns the stable text of an error.
func stable(err error) string {
	if err == nil {
		return ""
	}
	return Stable(err.Error())
}

// Stable returns a text of a member on one line, without the parts that differ between
// retries, and truncated.
func Stable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	if len(text) > maxMessage {
		// JSON replaces an incomplete character by U+FFFD: the saved status would never
		// equal the next one.
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// withoutURL returns the cause of a failed request, without its method and URL.
func withoutURL(err error) error {
	var link *url.Error
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

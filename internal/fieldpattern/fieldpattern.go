// Package fieldpattern parses the path of an ignore rule and matches it with the fields
// that drift finds.
//
// A path is written as a status shows it, such as spec.replicas or
// spec.template.spec.containers[name="memcached"].image. A field name can contain dots,
// as those of labels and annotations do. So a path is compared with a field as text, and
// is never split into names.
package fieldpattern

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Parse returns a path in the spelling of a status: sorted keys of a list item, values as
// JSON.
func Parse(s string) (string, error) {
	s = strings.TrimPrefix(s, ".")
	var out strings.Builder
	for rest := s; rest != ""; {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			open = len(rest)
		}
		names := rest[:open]
		if strings.ContainsAny(names, "]\"=' ") {
			return "", fmt.Errorf("%q is not a field name", names)
		}
		if out.Len() == 0 {
			if first, _, _ := strings.Cut(names, "."); first != "spec" && first != "metadata" {
				return "", errors.New("a path must begin with spec or metadata")
			}
		} else if names != "" && names[0] != '.' {
			return "", fmt.Errorf("a dot is missing before %q", names)
		}
		if slices.Contains(strings.Split(strings.TrimPrefix(names, "."), "."), "") && names != "" {
			return "", fmt.Errorf("a field name is missing in %q", names)
		}
		out.WriteString(names)
		if rest = rest[open:]; rest == "" {
			break
		}
		inner, after, ok := bracket(rest)
		if !ok {
			return "", errors.New("a ] is missing")
		}
		selector, err := parseSelector(inner)
		if err != nil {
			return "", err
		}
		out.WriteString(selector)
		rest = after
	}
	if out.Len() == 0 {
		return "", errors.New("the path is empty")
	}
	return out.String(), nil
}

// bracket splits "[inner]after". It ignores brackets within quotes.
func bracket(s string) (inner, after string, ok bool) {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ']' && !quoted:
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// parseSelector normalizes the text between brackets: key="value" pairs separated by
// commas, ="value" for an item of a set, or the index in a list.
func parseSelector(s string) (string, error) {
	if _, err := strconv.ParseUint(s, 10, 31); err == nil {
		return "[" + s + "]", nil
	}
	parts := splitOutsideQuotes(s)
	for _, part := range parts {
		name, raw, ok := strings.Cut(part, "=")
		if !ok || name == "" && len(parts) > 1 {
			return "", fmt.Errorf("[%s] does not select a list item; write it like [name=\"memcached\"]", s)
		}
		var scalar any
		if err := json.Unmarshal([]byte(raw), &scalar); err != nil {
			return "", fmt.Errorf("%s in [%s] is not a JSON value; put text in double quotes, like [name=\"memcached\"]", raw, s)
		}
	}
	slices.SortFunc(parts, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return cmp.Compare(nameA, nameB)
	})
	return "[" + strings.Join(parts, ",") + "]", nil
}

func splitOutsideQuotes(s string) []string {
	var parts []string
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	return append(parts, s[from:])
}

// Covers reports whether a parsed path names a field or one of its parents.
func Covers(path string, field fieldpath.Path) bool {
	var prefix strings.Builder
	for _, e := range field {
		part := e.String()
		if prefix.Len() == 0 {
			part = strings.TrimPrefix(part, ".")
		}
		prefix.WriteString(part)
		if prefix.Len() >= len(path) {
			return prefix.String() == path
		}
	}
	return false
}

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describe is what the user reads of an error: one line, or with causes from
// the API server, one more for each.
func describe(err error) string {
	if parts := joined(err); parts != nil {
		var lines []string
		for _, e := range parts {
			lines = append(lines, describe(e))
		}
		return strings.Join(lines, "\n")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	lines := causes(status.Status())
	if len(lines) == 0 {
		return err.Error()
	}
	// What was wrapped around the API server's answer says where it came from.
	prefix := strings.TrimSuffix(err.Error(), status.Status().Message)
	prefix = strings.TrimSuffix(strings.TrimSpace(prefix), ":")
	if prefix == "" || prefix == err.Error() {
		prefix = "the API server refuses it"
	}
	return prefix + ":\n  " + strings.Join(lines, "\n  ")
}

// joined returns the errors that errors.Join made err of, and nil for one error
// that only wraps several.
func joined(err error) []error {
	var coded codedError
	if errors.As(err, &coded) && coded.Error() == err.Error() {
		err = coded.error
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var texts []string
	for _, e := range several.Unwrap() {
		texts = append(texts, e.Error())
	}
	if strings.Join(texts, "\n") != err.Error() {
		return nil
	}
	return several.Unwrap()
}

var (
	notDeclared = regexp.MustCompile(`(\.[\w.\[\]"=,/-]+): field not declared in schema`)
	unknown     = regexp.MustCompile(`unknown field "([^"]+)"`)
)

// causes of a refusal, each as "field: value: fix", without duplicates: a value
// may break several rules of the schema in the same words.
func causes(s metav1.Status) []string {
	seen := map[string]bool{}
	var lines []string
	add := func(line string) {
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	unknownField := func(field string) {
		add(fmt.Sprintf("%s: there is no such field: correct its spelling or indentation (see kubectl explain cachecluster.spec)", strings.TrimPrefix(field, ".")))
	}
	for _, m := range append(notDeclared.FindAllStringSubmatch(s.Message, -1), unknown.FindAllStringSubmatch(s.Message, -1)...) {
		unknownField(m[1])
	}
	if s.Details != nil && (s.Reason == metav1.StatusReasonInvalid || s.Reason == metav1.StatusReasonConflict) {
		explained := map[string]bool{}
		for _, c := range s.Details.Causes {
			if !schemaOnly(c.Message) {
				explained[strings.TrimPrefix(c.Field, ".")] = true
			}
		}
		for _, c := range s.Details.Causes {
			field := strings.TrimPrefix(c.Field, ".")
			// A rule of ours says more than the schema's refusal of the same value.
			if schemaOnly(c.Message) && explained[field] {
				continue
			}
			message := strings.TrimPrefix(c.Message, "Invalid value: ")
			message = strings.TrimPrefix(message, `"object": `)
			// Admission names the root by a nil field.
			if field == "" || field == "<nil>" {
				if !strings.Contains(message, "some validation rules were not checked") {
					add(message)
				}
				continue
			}
			add(field + ": " + message)
		}
	}
	sort.Strings(lines)
	return lines
}

// schemaOnly tells the API server's generic words from those of a rule.
func schemaOnly(message string) bool {
	return strings.Contains(message, " in body should ") || strings.Contains(message, "should be a non-negative integer")
}

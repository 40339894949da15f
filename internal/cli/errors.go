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

// errorList holds independent errors. Each is printed on lines of its own.
type errorList []error

// newErrorList returns the errors that are not nil as one error, and nil without any.
func newErrorList(errs ...error) error {
	var list errorList
	for _, err := range errs {
		var nested errorList
		switch {
		case err == nil:
		case errors.As(err, &nested):
			list = append(list, nested...)
		default:
			list = append(list, err)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func (l errorList) Error() string {
	texts := make([]string, 0, len(l))
	for _, err := range l {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "\n")
}

func (l errorList) Unwrap() []error { return l }

// formatError returns the text of an error for the terminal: one line, and one
// more for each cause that the API server lists.
func formatError(err error) string {
	var list errorList
	if errors.As(err, &list) {
		lines := make([]string, 0, len(list))
		for _, e := range list {
			lines = append(lines, formatError(e))
		}
		return strings.Join(lines, "\n")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	lines := formatCauses(status.Status())
	if len(lines) == 0 {
		return err.Error()
	}
	// The context that was wrapped around the API server's message.
	prefix := strings.TrimSuffix(err.Error(), status.Status().Message)
	prefix = strings.TrimSuffix(strings.TrimSpace(prefix), ":")
	if prefix == "" || prefix == err.Error() {
		prefix = "rejected by the API server"
	}
	return prefix + ":\n  " + strings.Join(lines, "\n  ")
}

// The API server reports unknown fields in its message only, not as causes. A
// message with another wording is printed unchanged.
var (
	notDeclared  = regexp.MustCompile(`(\.[\w.\[\]"=,/-]+): field not declared in schema`)
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
)

// formatCauses returns the causes of a refusal as sorted lines "field: value:
// problem", without duplicates. The wording of a cause only affects the output,
// never the exit code.
func formatCauses(s metav1.Status) []string {
	lines := map[string]bool{}
	fields := append(notDeclared.FindAllStringSubmatch(s.Message, -1), unknownField.FindAllStringSubmatch(s.Message, -1)...)
	for _, match := range fields {
		lines[fmt.Sprintf("%s: unknown field; correct its spelling or indentation (see kubectl explain cachecluster.spec)", strings.TrimPrefix(match[1], "."))] = true
	}
	if s.Details != nil && (s.Reason == metav1.StatusReasonInvalid || s.Reason == metav1.StatusReasonConflict) {
		for _, line := range formatFieldCauses(s.Details.Causes) {
			lines[line] = true
		}
	}
	sorted := make([]string, 0, len(lines))
	for line := range lines {
		sorted = append(sorted, line)
	}
	sort.Strings(sorted)
	return sorted
}

func formatFieldCauses(causes []metav1.StatusCause) []string {
	// A field with a validation rule of the CRD has a message with the fix.
	hasRule := map[string]bool{}
	for _, c := range causes {
		if !isSchemaMessage(c.Message) {
			hasRule[strings.TrimPrefix(c.Field, ".")] = true
		}
	}
	var lines []string
	for _, c := range causes {
		field := strings.TrimPrefix(c.Field, ".")
		if isSchemaMessage(c.Message) && hasRule[field] {
			continue
		}
		message := strings.TrimPrefix(c.Message, "Invalid value: ")
		message = strings.TrimPrefix(message, `"object": `)
		// The API server prints the root of the object as <nil>.
		if field != "" && field != "<nil>" {
			message = field + ": " + message
		} else if strings.Contains(message, "some validation rules were not checked") {
			continue
		}
		lines = append(lines, message)
	}
	return lines
}

// isSchemaMessage reports whether a message comes from the OpenAPI schema. Both
// kinds of causes have the same type, so only the wording differs.
func isSchemaMessage(message string) bool {
	return strings.Contains(message, " in body should ") || strings.Contains(message, "should be a non-negative integer")
}

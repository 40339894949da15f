package drift

import (
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Edit is one change of a live object. Pointer is a JSON pointer (RFC 6901). A nil Value
// removes the field.
type Edit struct {
	Pointer string
	Value   any
}

// pointer returns the JSON pointer to a path. An absent list item gets the pointer to the end
// of its list.
func pointer(in any, path fieldpath.Path) string {
	var out strings.Builder
	for n, e := range path {
		out.WriteByte('/')
		if e.FieldName != nil {
			out.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(*e.FieldName))
			continue
		}
		list, _ := valueAt(in, path[:n])
		items, _ := list.([]any)
		index := slices.IndexFunc(items, func(candidate any) bool {
			_, found := itemAt([]any{candidate}, e)
			return found
		})
		if index < 0 {
			out.WriteByte('-')
		} else {
			out.WriteString(strconv.Itoa(index))
		}
	}
	return out.String()
}

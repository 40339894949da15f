// Package glossary generates the tables of docs/conditions.md from the glossary of the
// API. It changes only the text between the markers of a table.
package glossary

import (
	"fmt"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// A column is the title of a column and the function that renders its cells.
type column struct {
	title string
	cell  func(v1alpha1.Term) string
}

var (
	object  = column{"object", func(t v1alpha1.Term) string { return t.Object }}
	meaning = column{"meaning", func(t v1alpha1.Term) string { return t.Meaning }}
	remedy  = column{"remedy", func(t v1alpha1.Term) string { return t.Remedy }}
	retry   = column{"retry", func(t v1alpha1.Term) string { return t.Retry }}
	class   = column{"class", func(t v1alpha1.Term) string {
		if t.Class == "" {
			return ""
		}
		return "`" + string(t.Class) + "`"
	}}
)

func (c column) withTitle(title string) column { return column{title, c.cell} }

// tables are the generated tables, by the name in their marker.
var tables = map[string]struct {
	kind    v1alpha1.TermKind
	object  string
	columns []column
}{
	"condition types":           {v1alpha1.TermCondition, "", []column{object, meaning.withTitle("True means")}},
	"states":                    {v1alpha1.TermState, "", []column{meaning}},
	"error classes":             {v1alpha1.TermClass, "", []column{meaning, remedy.withTitle("who acts"), retry}},
	"reasons of CacheCluster":   {v1alpha1.TermReason, "CacheCluster", []column{meaning, remedy}},
	"reasons of member":         {v1alpha1.TermReason, "member", []column{class, meaning, remedy}},
	"reasons of ClusterProfile": {v1alpha1.TermReason, "ClusterProfile", []column{meaning, remedy}},
}

const startMarker, endMarker = "<!-- glossary: ", "<!-- end of glossary -->\n"

// Rewrite returns the document with its tables generated again.
func Rewrite(document string) (string, error) {
	var out strings.Builder
	seen := 0
	for {
		before, rest, found := strings.Cut(document, startMarker)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, " -->\n")
		table, known := tables[name]
		if !ok || !known {
			return "", fmt.Errorf("unknown glossary table %q", name)
		}
		_, after, ok := strings.Cut(rest, endMarker)
		if !ok {
			return "", fmt.Errorf("glossary table %q has no end marker %s", name, strings.TrimSpace(endMarker))
		}
		fmt.Fprintf(&out, "%s%s -->\n", startMarker, name)
		write(&out, string(table.kind), table.columns, terms(table.kind, table.object))
		out.WriteString(endMarker)
		document = after
		seen++
	}
	if seen != len(tables) {
		return "", fmt.Errorf("the document has %d of %d glossary tables", seen, len(tables))
	}
	return out.String(), nil
}

func terms(kind v1alpha1.TermKind, object string) []v1alpha1.Term {
	var found []v1alpha1.Term
	for _, t := range v1alpha1.Glossary() {
		if t.Kind == kind && (object == "" || t.Object == object) {
			found = append(found, t)
		}
	}
	return found
}

func write(out *strings.Builder, kind string, columns []column, terms []v1alpha1.Term) {
	words := strings.Fields(kind)
	titles := []string{words[len(words)-1]}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, t := range terms {
		cells := []string{"`" + t.Word + "`"}
		for _, c := range columns {
			cells = append(cells, c.cell(t))
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
}

// Package glossary writes the tables of docs/conditions.md out of the API's own
// glossary. It changes what stands between the markers of a table and nothing
// else.
package glossary

import (
	"fmt"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// A column of a table: its title, and its cell for a term.
type column struct {
	title string
	cell  func(v1alpha1.Term) string
}

var (
	on      = column{"of", func(t v1alpha1.Term) string { return t.On }}
	meaning = column{"meaning", func(t v1alpha1.Term) string { return t.Meaning }}
	remedy  = column{"remedy", func(t v1alpha1.Term) string { return t.Remedy }}
	nextTry = column{"next try", func(t v1alpha1.Term) string { return t.NextTry }}
	class   = column{"class", func(t v1alpha1.Term) string {
		if t.Class == "" {
			return ""
		}
		return "`" + string(t.Class) + "`"
	}}
)

func (c column) as(title string) column { return column{title, c.cell} }

// tables by the name in their marker.
var tables = map[string]struct {
	kind    v1alpha1.TermKind
	on      string
	columns []column
}{
	"condition types":           {v1alpha1.TermCondition, "", []column{on, meaning.as("True means")}},
	"states":                    {v1alpha1.TermState, "", []column{meaning}},
	"error classes":             {v1alpha1.TermClass, "", []column{meaning, remedy.as("who acts"), nextTry}},
	"reasons of CacheCluster":   {v1alpha1.TermReason, "CacheCluster", []column{meaning, remedy}},
	"reasons of member":         {v1alpha1.TermReason, "member", []column{class, meaning, remedy}},
	"reasons of ClusterProfile": {v1alpha1.TermReason, "ClusterProfile", []column{meaning, remedy}},
}

const begin, end = "<!-- glossary: ", "<!-- end of glossary -->\n"

// Rewrite gives the document with each table as the glossary has it.
func Rewrite(document string) (string, error) {
	var out strings.Builder
	seen := 0
	for {
		before, rest, found := strings.Cut(document, begin)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, " -->\n")
		table, known := tables[name]
		if !ok || !known {
			return "", fmt.Errorf("there is no glossary %q", name)
		}
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			return "", fmt.Errorf("the glossary %q has no end: %s", name, strings.TrimSpace(end))
		}
		fmt.Fprintf(&out, "%s%s -->\n", begin, name)
		write(&out, string(table.kind), table.columns, terms(table.kind, table.on))
		out.WriteString(end)
		document = after
		seen++
	}
	if seen != len(tables) {
		return "", fmt.Errorf("the document has %d tables of the glossary, of %d", seen, len(tables))
	}
	return out.String(), nil
}

func terms(kind v1alpha1.TermKind, on string) []v1alpha1.Term {
	var found []v1alpha1.Term
	for _, t := range v1alpha1.Glossary() {
		if t.Kind == kind && (on == "" || t.On == on) {
			found = append(found, t)
		}
	}
	return found
}

func write(out *strings.Builder, first string, columns []column, terms []v1alpha1.Term) {
	words := strings.Fields(first)
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

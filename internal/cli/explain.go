package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [TERM...]",
		Short: "Explain a reason, state, error class or condition type",
		Long: "Print the meaning of a term in a status, and what to do about it. Without a term, list all\n" +
			"terms. Case is ignored. No hub is needed.",
		Example: "  reconcile-lab explain QuotaExceeded",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return namesOf(v1alpha1.Glossary()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.explain(args) },
	}
}

func (a *app) explain(names []string) error {
	terms := v1alpha1.Glossary()
	if len(names) > 0 {
		terms = nil
		for _, name := range names {
			found := lookupTerm(name)
			if len(found) == 0 {
				return badInput("term: %q: not a reason, state, error class or condition type; did you mean %s? `reconcile-lab explain` lists all terms", name, nearestTerm(name))
			}
			terms = append(terms, found...)
		}
	}
	switch {
	case a.structured():
		return a.printValue(terms, false)
	case len(names) > 0:
		for i := range terms {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			printTerm(a.out, &terms[i])
		}
		return nil
	}
	rows := make([][]string, 0, len(terms))
	for i := range terms {
		t := &terms[i]
		rows = append(rows, []string{t.Word, string(t.Kind), t.Object, string(t.Class), plainText(t.Meaning)})
	}
	return table(a.out, []string{"TERM", "KIND", "OF", "CLASS", "MEANING"}, rows)
}

// lookupTerm returns the entries for a name. It ignores case, and the group of a
// condition type is optional.
func lookupTerm(name string) []v1alpha1.Term {
	return slices.DeleteFunc(v1alpha1.Glossary(), func(t v1alpha1.Term) bool {
		return !strings.EqualFold(t.Word, name) && !strings.EqualFold(withoutGroup(t.Word), name)
	})
}

func withoutGroup(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func namesOf(terms []v1alpha1.Term) []string {
	names := make([]string, 0, len(terms))
	for _, t := range terms {
		names = append(names, withoutGroup(t.Word))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func printTerm(w io.Writer, t *v1alpha1.Term) {
	kind := fmt.Sprintf("%s of a %s", t.Kind, strings.ReplaceAll(t.Object, ", ", " and a "))
	if t.Class != "" {
		kind += ", class " + string(t.Class)
	}
	fmt.Fprintf(w, "%s (%s)\n  %s\n", t.Word, kind, plainText(t.Meaning))
	label, retry := "what to do", t.Retry
	if t.Kind == v1alpha1.TermClass {
		label = "who acts"
	}
	if t.Remedy != "" {
		fmt.Fprintf(w, "  %s: %s\n", label, plainText(t.Remedy))
	}
	if t.Class != "" {
		for _, class := range lookupTerm(string(t.Class)) {
			if class.Kind == v1alpha1.TermClass {
				retry = class.Retry
			}
		}
	}
	if retry != "" {
		fmt.Fprintf(w, "  retry: %s\n", retry)
	}
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// plainText removes the Markdown of a glossary entry: a link becomes its title, and
// the backquotes of commands are dropped.
func plainText(markdown string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllStringFunc(markdown, func(link string) string {
		m := markdownLink.FindStringSubmatch(link)
		if strings.HasPrefix(m[2], "#") {
			return fmt.Sprintf("%q in docs/conditions.md", m[1])
		}
		return m[1]
	}), "`", "")
}

// nearestTerm returns the term with the smallest edit distance to a name.
func nearestTerm(name string) string {
	name = strings.ToLower(name)
	return slices.MinFunc(namesOf(v1alpha1.Glossary()), func(a, b string) int {
		return cmp.Compare(editDistance(name, strings.ToLower(a)), editDistance(name, strings.ToLower(b)))
	})
}

// editDistance returns the Levenshtein distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

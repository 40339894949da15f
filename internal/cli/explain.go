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
		Use:   "explain [WORD...]",
		Short: "Explain a reason, state, error class or condition type",
		Long: "explain says what a word in a status means and what to do about it. Without a word it lists\n" +
			"all of them. Upper and lower case are the same. It asks no hub.",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return wordsOf(v1alpha1.Glossary()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.explain(args) },
	}
}

func (a *app) explain(words []string) error {
	terms := v1alpha1.Glossary()
	if len(words) > 0 {
		terms = nil
		for _, word := range words {
			found := termsOf(word)
			if len(found) == 0 {
				return badInput("there is no reason, state, error class or condition type %q: did you mean %s? reconcile-lab explain lists all", word, nearest(word))
			}
			terms = append(terms, found...)
		}
	}
	switch {
	case a.structured():
		return a.printValue(terms, false)
	case len(words) > 0:
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
		rows = append(rows, []string{t.Word, string(t.Kind), t.On, string(t.Class), plain(t.Meaning)})
	}
	return table(a.out, []string{"WORD", "KIND", "OF", "CLASS", "MEANING"}, rows)
}

// termsOf a word, in whatever case, with or without the group of a condition type.
func termsOf(word string) []v1alpha1.Term {
	return slices.DeleteFunc(v1alpha1.Glossary(), func(t v1alpha1.Term) bool {
		return !strings.EqualFold(t.Word, word) && !strings.EqualFold(withoutGroup(t.Word), word)
	})
}

func withoutGroup(word string) string { return word[strings.LastIndex(word, "/")+1:] }

func wordsOf(terms []v1alpha1.Term) []string {
	words := make([]string, 0, len(terms))
	for _, t := range terms {
		words = append(words, withoutGroup(t.Word))
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func printTerm(w io.Writer, t *v1alpha1.Term) {
	what := fmt.Sprintf("%s of a %s", t.Kind, strings.ReplaceAll(t.On, ", ", " and a "))
	if t.Class != "" {
		what += ", class " + string(t.Class)
	}
	fmt.Fprintf(w, "%s (%s)\n  %s\n", t.Word, what, plain(t.Meaning))
	label, next := "what to do", t.NextTry
	if t.Kind == v1alpha1.TermClass {
		label = "who acts"
	}
	if t.Remedy != "" {
		fmt.Fprintf(w, "  %s: %s\n", label, plain(t.Remedy))
	}
	if t.Class != "" {
		for _, class := range termsOf(string(t.Class)) {
			if class.Kind == v1alpha1.TermClass {
				next = class.NextTry
			}
		}
	}
	if next != "" {
		fmt.Fprintf(w, "  next try: %s\n", next)
	}
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// plain is Markdown for a terminal: links by their titles, commands in quotes.
func plain(markdown string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllStringFunc(markdown, func(link string) string {
		m := markdownLink.FindStringSubmatch(link)
		if strings.HasPrefix(m[2], "#") {
			return fmt.Sprintf("%q in docs/conditions.md", m[1])
		}
		return m[1]
	}), "`", "")
}

// nearest is the known word that takes the fewest changes to get to.
func nearest(word string) string {
	word = strings.ToLower(word)
	return slices.MinFunc(wordsOf(v1alpha1.Glossary()), func(a, b string) int {
		return cmp.Compare(edits(word, strings.ToLower(a)), edits(word, strings.ToLower(b)))
	})
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
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

// Package prose loads the rules of the prose linter for tests of the texts that users read.
package prose

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxSentence is the largest number of words in a sentence.
const MaxSentence = 25

// termsFile is the list of replaced terms, relative to the root of the repository.
const termsFile = "hack/prose/styles/ReconcileLab/Terms.yml"

// Term is a term that docs/glossary.md replaces.
type Term struct {
	// Pattern matches the replaced term in any case.
	Pattern *regexp.Regexp
	// Use is the term of the glossary.
	Use string
}

// Terms are the replaced terms, ordered by their patterns.
type Terms []Term

// Load reads the terms of the repository that contains the working directory.
func Load() (Terms, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, termsFile))
	if err != nil {
		return nil, err
	}
	var rule struct {
		Swap map[string]string `json:"swap"`
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		return nil, fmt.Errorf("%s: %w", termsFile, err)
	}
	terms := make(Terms, 0, len(rule.Swap))
	for pattern, use := range rule.Swap {
		re, err := regexp.Compile(`(?i)\b(?:` + pattern + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", termsFile, err)
		}
		terms = append(terms, Term{Pattern: re, Use: use})
	}
	if len(terms) < 40 {
		return nil, fmt.Errorf("%s: %d terms, want at least 40", termsFile, len(terms))
	}
	slices.SortFunc(terms, func(a, b Term) int { return strings.Compare(a.Pattern.String(), b.Pattern.String()) })
	return terms, nil
}

// root returns the next directory above the working directory that has a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s", start)
		}
	}
}

// code matches text in backticks, which names a field, a command or a value.
var code = regexp.MustCompile("`[^`]*`")

// Problems returns a correction for each replaced term in a text. It ignores code in
// backticks.
func (t Terms) Problems(text string) (problems []string) {
	text = code.ReplaceAllString(text, "``")
	for _, term := range t {
		if found := term.Pattern.FindString(text); found != "" {
			problems = append(problems, fmt.Sprintf("use %q instead of %q", term.Use, found))
		}
	}
	return problems
}

var (
	sentenceEnd = regexp.MustCompile(`[.;:!?]\s+`)
	word        = regexp.MustCompile("[\\w`./'%-]+")
)

// LongSentences returns the sentences of a text that have more words than MaxSentence.
func LongSentences(text string) (long []string) {
	for _, sentence := range sentenceEnd.Split(text, -1) {
		if len(word.FindAllString(sentence, -1)) > MaxSentence {
			long = append(long, sentence)
		}
	}
	return long
}

package docs_test

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/internal/prose"
)

// ambiguous are terms that also have a legitimate use, such as a lock that is held. Reviews
// decide about them, the prose linter does not.
var ambiguous = map[string]bool{
	"made": true, "leave to": true, "keep for": true, "hold": true, "held": true, "side": true,
	"behind": true, "ahead": true, "does not show yet": true, "early": true, "moved": true,
}

// TestGlossary_ReplacedTermsAreBanned compares the last table of the glossary with the terms of
// the prose linter.
func TestGlossary_ReplacedTermsAreBanned(t *testing.T) {
	banned, err := prose.Load()
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(read(t, "glossary.md"), "\n| use | instead of |\n|---|---|\n")
	if !found {
		t.Fatal("glossary.md has no table of replaced terms")
	}
	terms := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 4 {
			t.Fatalf("unexpected row %q", row)
		}
		for term := range strings.SplitSeq(cells[2], ",") {
			term = strings.TrimSpace(term)
			terms++
			matched := len(banned.Problems(term)) > 0
			if matched == ambiguous[term] {
				t.Errorf("term %q: banned by the prose linter: %t, listed as ambiguous: %t; exactly one must be true", term, matched, ambiguous[term])
			}
		}
	}
	if terms < 40 {
		t.Errorf("the glossary replaces %d terms, want at least 40", terms)
	}
}

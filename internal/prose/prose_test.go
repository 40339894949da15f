package prose

import (
	"strings"
	"testing"
)

func TestProblems_IgnoresCodeAndNames(t *testing.T) {
	terms, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"somebody changed the field":                  1,
		"Somebody sees a fight":                       2,
		"the reason is DriftFight":                    0,
		"run `reconcile-lab inject fight` in the lab": 0,
		"another client changed the field":            0,
	} {
		if got := terms.Problems(text); len(got) != want {
			t.Errorf("%q: problems %q, want %d", text, got, want)
		}
	}
}

func TestLongSentences_CountsWordsOfEachSentence(t *testing.T) {
	limit := strings.TrimSpace(strings.Repeat("word ", MaxSentence))
	for text, want := range map[string]int{limit: 0, limit + "; " + limit: 0, limit + " word": 1} {
		if got := LongSentences(text); len(got) != want {
			t.Errorf("%q: %d long sentences, want %d", text, len(got), want)
		}
	}
}

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/internal/prose"
)

var (
	// A list item and an indented block are no part of a sentence.
	paragraph = regexp.MustCompile(`\n\s*\n|\n(?:\t| {2,})|\n ?(?:\d+\.|-) `)
	marker    = regexp.MustCompile(`(?m)^\+\S.*$`) // for a generator
)

// TestGoComments_SentencesAreShort applies the limit of words to comments: the prose linter
// reads a comment line by line and checks only the terms in it.
func TestGoComments_SentencesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "zz_generated") {
			return err
		}
		files++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, s := range longSentences(group) {
				t.Errorf("%s: split this sentence, it has more than %d words: %q", fset.Position(group.Pos()), prose.MaxSentence, s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d Go files were read", files)
	}
}

// longSentences returns the sentences of a comment that have too many words.
func longSentences(group *ast.CommentGroup) (long []string) {
	for _, p := range paragraph.Split(marker.ReplaceAllString(group.Text(), ""), -1) {
		long = append(long, prose.LongSentences(strings.ReplaceAll(p, "\n", " "))...)
	}
	return long
}

func TestLongSentences_CountsWordsAcrossLines(t *testing.T) {
	short, half := "// one two three.", "// "+strings.Repeat("word ", 13)
	comment := func(lines ...string) *ast.CommentGroup {
		group := &ast.CommentGroup{}
		for _, line := range lines {
			group.List = append(group.List, &ast.Comment{Text: line})
		}
		return group
	}
	if long := longSentences(comment(half, half)); len(long) != 1 {
		t.Errorf("26 words on two lines: %d long sentences, want 1", len(long))
	}
	if long := longSentences(comment(half+".", half, short)); len(long) != 0 {
		t.Errorf("sentences of 13 words: %d long sentences, want 0", len(long))
	}
}

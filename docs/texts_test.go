package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/prose"
)

var (
	textFolders = []string{"api", "hub", "spoke", "internal", "cmd"}
	// textFields are the names of the fields that contain a text for users, in any case.
	textFields = []string{"message", "hint", "note", "help", "meaning", "remedy"}
	// faultCommand matches a fault in a command, since the name of a fault may be a replaced term.
	faultCommand = regexp.MustCompile(`\b(?:inject|fault) [a-z-]+`)
	// document matches YAML, JSON and Go templates.
	document = regexp.MustCompile(`(?m)^\s*(?:[{\[]|apiVersion:|- \w+:)|\{\{`)
	letters  = regexp.MustCompile(`[A-Za-z]{2,}`)
)

// TestTexts_UseTermsOfGlossary checks every string literal with at least three words: condition
// messages, hints, notes of events, errors, logs, help. Sentences of textFields must be short.
func TestTexts_UseTermsOfGlossary(t *testing.T) {
	terms, err := prose.Load()
	if err != nil {
		t.Fatal(err)
	}
	literals, fields := 0, 0
	for _, folder := range textFolders {
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "nodeimage":
				// The node image is a program of its own, which no user sees.
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			eachText(file, func(at token.Pos, text string) {
				literals++
				for _, problem := range terms.Problems(faultCommand.ReplaceAllString(text, "")) {
					t.Errorf("%s: %q: %s", fset.Position(at), text, problem)
				}
			}, func(at token.Pos, text string) {
				if text != "" {
					fields++
				}
				for _, sentence := range prose.LongSentences(text) {
					t.Errorf("%s: split this sentence, it has more than %d words: %q", fset.Position(at), prose.MaxSentence, sentence)
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if literals < 300 || fields < 50 {
		t.Errorf("checked %d literals and %d fields, want at least 300 and 50", literals, fields)
	}
}

// TestGlossary_SentencesAreShort checks the texts of reconcile-lab explain and
// docs/conditions.md.
func TestGlossary_SentencesAreShort(t *testing.T) {
	for _, term := range v1alpha1.Glossary() {
		for _, text := range []string{term.Meaning, term.Remedy} {
			for _, sentence := range prose.LongSentences(text) {
				t.Errorf("%s %s: split this sentence, it has more than %d words: %q", term.Kind, term.Word, prose.MaxSentence, sentence)
			}
		}
	}
}

// eachText visits the literals with three words, and the texts of textFields.
func eachText(file *ast.File, literal, field func(token.Pos, string)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			// A struct tag is not a text.
			n.Tag = nil
		case *ast.CallExpr:
			// A regular expression matches the text of another program.
			selector, ok := n.Fun.(*ast.SelectorExpr)
			return !ok || !strings.HasPrefix(selector.Sel.Name, "MustCompile")
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(textFields, strings.ToLower(key.Name)) {
				field(n.Pos(), format(n.Value))
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				selector, ok := left.(*ast.SelectorExpr)
				if ok && len(n.Lhs) == len(n.Rhs) && slices.Contains(textFields, strings.ToLower(selector.Sel.Name)) {
					field(n.Pos(), format(n.Rhs[i]))
				}
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if err == nil && n.Kind == token.STRING && len(letters.FindAllString(text, -1)) >= 3 && strings.Contains(text, " ") && !document.MatchString(text) {
				literal(n.Pos(), text)
			}
		}
		return true
	})
}

// format returns the text of an expression, with x for each part that is not a literal.
func format(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return text
		}
	case *ast.BinaryExpr:
		left, right := format(e.X), format(e.Y)
		if left == "" && right == "" {
			return ""
		}
		return orX(left) + orX(right)
	case *ast.ParenExpr:
		return format(e.X)
	case *ast.CallExpr:
		if selector, ok := e.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return format(e.Args[0])
		}
	}
	return ""
}

func orX(text string) string {
	if text == "" {
		return "x"
	}
	return text
}

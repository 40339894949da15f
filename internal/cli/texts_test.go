package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
	"github.com/reconcile-lab/reconcile-lab/internal/prose"
)

// replacedTerms returns the terms of the prose linter, which docs/glossary.md replaces.
func replacedTerms(t *testing.T) prose.Terms {
	t.Helper()
	terms, err := prose.Load()
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// faultNames matches the name of a fault in a command.
var faultNames = func() *regexp.Regexp {
	var names []string
	for _, k := range fault.Kinds() {
		names = append(names, regexp.QuoteMeta(k.Name))
	}
	name := "(?:" + strings.Join(names, "|") + ")"
	return regexp.MustCompile(`(?m)^  ` + name + ` |\b(?:inject|fault) ` + name + `\b`)
}()

func checkTerms(t *testing.T, terms prose.Terms, where, text string) {
	t.Helper()
	text = faultNames.ReplaceAllString(text, "")
	for _, problem := range terms.Problems(text) {
		t.Errorf("%s: %q: %s", where, text, problem)
	}
}

func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, visit)
	}
}

func TestHelp_FollowsStyle(t *testing.T) {
	terms := replacedTerms(t)
	root, _ := (&app{}).command("reconcile-lab")
	commands, flags := 0, 0
	startsUpper := func(s string) bool { return s != "" && unicode.IsUpper([]rune(s)[0]) }
	// A usage begins with a lower-case word or an abbreviation such as HTTP.
	usageStart := regexp.MustCompile("^(?:`?[a-z]|[A-Z]{2})")
	eachCommand(root, func(cmd *cobra.Command) {
		commands++
		path := cmd.CommandPath()
		if n := len([]rune(cmd.Short)); !startsUpper(cmd.Short) || strings.HasSuffix(cmd.Short, ".") || n > 72 {
			t.Errorf("%s: Short has %d characters, want an upper-case start, no full stop, at most 72 characters: %q", path, n, cmd.Short)
		}
		if cmd.Long != "" && !startsUpper(cmd.Long) {
			t.Errorf("%s: Long must start upper-case: %q", path, cmd.Long)
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			// The lines of faults contain more than one sentence.
			if n := len([]rune(line)); n > 100 && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: a line of Long has %d characters, want at most 100: %q", path, n, line)
			}
		}
		for _, text := range []string{cmd.Short, cmd.Long, cmd.Example} {
			checkTerms(t, terms, path, text)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			where := path + " --" + f.Name
			if n := len([]rune(f.Usage)); !usageStart.MatchString(f.Usage) || strings.HasSuffix(f.Usage, ".") || n > 110 {
				t.Errorf("%s: usage has %d characters, want a lower-case start, no full stop, at most 110 characters: %q", where, n, f.Usage)
			}
			checkTerms(t, terms, where, f.Usage)
		})
	})
	if commands < 15 || flags < 40 {
		t.Errorf("checked %d commands and %d flags, want at least 15 and 40", commands, flags)
	}
	for _, e := range exitCodes {
		checkTerms(t, terms, "exit code "+strconv.Itoa(e.code), e.meaning)
	}
}

// stringLiterals visits every string literal of the package, and reports whether it is
// the text of an error.
func stringLiterals(t *testing.T, visit func(position, text string, isError bool)) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	errorFunctions := map[string]bool{"fmt.Errorf": true, "errors.New": true, "badInput": true}
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ofError := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.CallExpr:
				if len(n.Args) > 0 && errorFunctions[functionName(n.Fun)] {
					ofError[n.Args[0]] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					visit(fset.Position(n.Pos()).String(), text, ofError[n])
				}
			}
			return true
		})
	}
}

func functionName(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok {
			return pkg.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

func TestErrors_FollowStyle(t *testing.T) {
	// An error starts lower-case, or with a field, a flag, a value or a kind.
	start := regexp.MustCompile(`^(?:[a-z%]|--[a-z%]|CacheCluster\b)`)
	errors := 0
	stringLiterals(t, func(position, text string, isError bool) {
		if !isError {
			return
		}
		errors++
		if !start.MatchString(text) || strings.HasSuffix(text, ".") {
			t.Errorf("%s: an error must start lower-case and end without a full stop: %q", position, text)
		}
	})
	if errors < 40 {
		t.Errorf("checked %d errors, want at least 40", errors)
	}
}

func TestTexts_UseTermsOfGlossary(t *testing.T) {
	terms := replacedTerms(t)
	stringLiterals(t, func(position, text string, _ bool) {
		// A text without a space is a name, a flag or a label.
		if strings.Contains(text, " ") {
			checkTerms(t, terms, position, text)
		}
	})
}

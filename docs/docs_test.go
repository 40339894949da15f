// Package docs_test compares the documents with the code: conditions, commands, metrics, terms and links.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/glossary"
)

// vocabulary returns the string constants of api/v1alpha1 whose names begin with
// one of prefixes, as value → name.
func vocabulary(t *testing.T, prefixes ...string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../api/v1alpha1/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files of the API: %v", err)
	}
	found := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			for _, prefix := range prefixes {
				if name := spec.Names[0].Name; strings.HasPrefix(name, prefix) {
					value, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					found[value] = name
				}
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatalf("no constants named %v: has the API's vocabulary moved?", prefixes)
	}
	return found
}

// rows returns the words that begin a table row in the sections of a document
// whose heading begins with heading.
func rows(t *testing.T, document, heading string) map[string]bool {
	t.Helper()
	row := regexp.MustCompile("^\\| `([^`]+)` \\|")
	words := map[string]bool{}
	in := false
	for _, line := range strings.Split(read(t, document), "\n") {
		if strings.HasPrefix(line, "## ") {
			in = strings.HasPrefix(line, "## "+heading)
		}
		if m := row.FindStringSubmatch(line); in && m != nil {
			words[m[1]] = true
		}
	}
	return words
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConditionsPage_ExplainsEveryConstantOfTheAPI(t *testing.T) {
	for _, c := range []struct {
		heading  string
		prefixes []string
	}{
		{"Condition types", []string{"Condition"}},
		{"States", []string{"Member"}},
		{"Error classes", []string{"Class"}},
		{"Reasons", []string{"Reason"}},
	} {
		t.Run(c.heading, func(t *testing.T) {
			known := vocabulary(t, c.prefixes...)
			explained := rows(t, "conditions.md", c.heading)
			for value, name := range known {
				if !explained[value] {
					t.Errorf("%s (%q) has no row in conditions.md under %q", name, value, c.heading)
				}
			}
			for value := range explained {
				if _, ok := known[value]; !ok {
					t.Errorf("conditions.md explains %q under %q, which the API does not have", value, c.heading)
				}
			}
		})
	}
}

func TestConditionsPage_TablesAreUpToDate(t *testing.T) {
	document := read(t, "conditions.md")
	want, err := glossary.Rewrite(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, document); diff != "" {
		t.Errorf("conditions.md is out of date; bring it up to date with: go run ./hack/glossary docs/conditions.md\n%s", diff)
	}
}

func TestConditionsPage_ExplainsEachTermOnce(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, term := range v1alpha1.Glossary() {
		key := [2]string{string(term.Kind), term.Word}
		if seen[key] {
			t.Errorf("the %s %s is explained twice", term.Kind, term.Word)
		}
		seen[key] = true
		if term.Meaning == "" || term.Kind == v1alpha1.TermReason && term.Remedy == "" {
			t.Errorf("the %s %s has no meaning or no remedy", term.Kind, term.Word)
		}
	}
}

func TestPages_LinksResolve(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, "../README.md", "../CONTRIBUTING.md")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, document := range documents {
		for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", document, m[1])
			}
		}
	}
}

// anchors of a document's headings as GitHub makes them.
func anchors(text string) map[string]bool {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	found := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			found[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")] = true
		}
	}
	return found
}

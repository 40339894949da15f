package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// constants returns the values of the constants in vocabulary.go, by name.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "vocabulary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[spec.Names[0].Name] = value
			}
		}
		return true
	})
	if len(found) < 50 {
		t.Fatalf("vocabulary.go has %d constants, want at least 50", len(found))
	}
	return found
}

func TestVocabulary_ValuesAreUnique(t *testing.T) {
	for _, prefix := range []string{"Condition", "Class", "Reason", "Label", "Annotation"} {
		names := map[string]string{}
		for name, value := range constants(t) {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			if other, taken := names[value]; taken {
				t.Errorf("%s and %s are both %q", name, other, value)
			}
			names[value] = name
		}
	}
}

// TestVocabulary_ReasonsAreValidInConditions checks the pattern of the API server, which
// refuses a condition with any other reason.
func TestVocabulary_ReasonsAreValidInConditions(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	for name, value := range constants(t) {
		if word, isReason := strings.CutPrefix(name, "Reason"); isReason && (!form.MatchString(value) || word != value) {
			t.Errorf("%s is %q, want %q", name, value, word)
		}
	}
}

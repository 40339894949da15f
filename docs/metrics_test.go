package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	declaredMetric   = regexp.MustCompile(`Namespace:\s*"reconcile_lab",\s*(?:Subsystem:\s*"([a-z_]+)",\s*)?Name:\s*"([a-z_]+)"`)
	documentedMetric = regexp.MustCompile("(?m)^\\| `(reconcile_lab_[a-z_]+)` \\|")
)

func TestMetricsPage_ListsEveryMetric(t *testing.T) {
	declared := map[string]bool{}
	for _, folder := range []string{"../hub", "../spoke", "../internal", "../cmd"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declaredMetric.FindAllStringSubmatch(string(source), -1) {
				name := m[2]
				if m[1] != "" {
					name = m[1] + "_" + name
				}
				declared["reconcile_lab_"+name] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(declared) == 0 {
		t.Fatal("no metric is declared in the form that this test expects")
	}
	documented := map[string]bool{}
	for _, m := range documentedMetric.FindAllStringSubmatch(read(t, "metrics.md"), -1) {
		documented[m[1]] = true
		if !declared[m[1]] {
			t.Errorf("metrics.md lists %s, which no code declares", m[1])
		}
	}
	for name := range declared {
		if !documented[name] {
			t.Errorf("%s is not in metrics.md", name)
		}
	}
}

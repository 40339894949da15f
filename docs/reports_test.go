package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A row that names a removed test excludes nothing.
func TestReportsPage_NamesExistingTests(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "reports_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(read(t, "reports.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "what users met" {
			continue
		}
		rows++
		named := tests.FindAllStringSubmatch(cells[4], -1)
		if len(named) == 0 {
			t.Errorf("no test excludes: %s", cells[1])
		}
		for _, n := range named {
			if !strings.Contains(sources.String(), "func "+n[1]+"(") && !strings.Contains(sources.String(), `It("`+n[1]+`"`) {
				t.Errorf("test %s does not exist; it must exclude: %s", n[1], cells[1])
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d rows were read", rows)
	}
}

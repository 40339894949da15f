package field_test

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/field"
)

func object() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"app.kubernetes.io/name": "memcached"}},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "exporter", "image": "e:1"},
				map[string]any{"name": "memcached", "image": "m:1"},
			}}},
			"ports": []any{map[string]any{"port": int64(80), "name": "web"}},
		},
	}
}

func TestFind_ReadsThePathsOfStatuses(t *testing.T) {
	for path, want := range map[string]any{
		"spec.replicas":  int64(2),
		".spec.replicas": int64(2),
		`spec.template.spec.containers[name="memcached"].image`: "m:1",
		`spec.template.spec.containers[name=memcached].image`:   "m:1",
		"spec.ports[port=80].name":                              "web",
		"metadata.labels.app.kubernetes.io/name":                "memcached",
	} {
		o := object()
		f, err := field.Find(o, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, _ := f.Value(); got != want {
			t.Errorf("%s: value %v, want %v", path, got, want)
		}
		f.Set("changed")
		again, err := field.Find(o, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := again.Value(); got != "changed" {
			t.Errorf("%s: value %v after Set", path, got)
		}
	}
}

func TestFind_ReturnsAFieldThatIsNotSet(t *testing.T) {
	for _, path := range []string{"spec.paused", "metadata.labels.example.com/team"} {
		o := object()
		f, err := field.Find(o, path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, exists := f.Value(); exists {
			t.Errorf("%s is set", path)
		}
		f.Set("x")
		again, err := field.Find(o, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := again.Value(); got != "x" {
			t.Errorf("%s: value %v", path, got)
		}
		again.Remove()
		if _, exists := f.Value(); exists {
			t.Errorf("%s is set after Remove", path)
		}
	}
}

func TestFind_ReportsWhereAPathFails(t *testing.T) {
	for path, want := range map[string]string{
		"":                        "incomplete path",
		"spec.":                   "incomplete path",
		"spec.nothing.below":      `unknown field "spec.nothing"`,
		"spec.replicas.more":      "the parent is not an object",
		"spec.replicas[name=a].b": "the field is not a list",
		`spec.template.spec.containers[name="redis"].image`: `no list item matches [name="redis"]`,
	} {
		if _, err := field.Find(object(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
}

func TestParse_UsesTheTypeOfTheOldValue(t *testing.T) {
	for _, test := range []struct {
		text      string
		old, want any
	}{
		{"7", int64(2), int64(7)}, {"7", "2", "7"}, {"true", false, true}, {"8", nil, int64(8)}, {"text", nil, "text"},
	} {
		if got, err := field.Parse(test.text, test.old); err != nil || got != test.want {
			t.Errorf("%q instead of %v: %v (%T), %v", test.text, test.old, got, got, err)
		}
	}
	if _, err := field.Parse("seven", int64(2)); err == nil {
		t.Error("text was accepted as a number")
	}
}

func TestDifferent_KeepsTheType(t *testing.T) {
	for _, old := range []any{int64(0), true, "a"} {
		got, err := field.Different(old)
		if err != nil || got == old {
			t.Errorf("%v: %v, %v", old, got, err)
		}
		if _, err := field.Parse("x", got); (err == nil) != (old == "a") {
			t.Errorf("%v: %v has another type", old, got)
		}
	}
	if _, err := field.Different([]any{}); err == nil {
		t.Error("a list was accepted")
	}
}

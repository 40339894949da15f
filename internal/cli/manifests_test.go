package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const minimal = `apiVersion: cache.reconcile-lab.io/v1alpha1
kind: CacheCluster
metadata: {name: NAME}
spec: {placement: {clusterSelector: {}}}
`

func named(name string) string { return strings.ReplaceAll(minimal, "NAME", name) }

func TestDecodeFile_SplitsAndChecksDocuments(t *testing.T) {
	for _, tc := range []struct {
		reason, content string
		want            []string // names
		wantError       []string // parts
	}{
		{"one document", named("a"), []string{"a"}, nil},
		{"several documents in their order", named("b") + "---\n" + named("a"), []string{"b", "a"}, nil},
		{"empty documents and comments are skipped", "# hello\n---\n---\n" + named("a") + "---\n", []string{"a"}, nil},
		{"JSON", `{"apiVersion":"cache.reconcile-lab.io/v1alpha1","kind":"CacheCluster","metadata":{"name":"a"}}`, []string{"a"}, nil},
		{"a list, as get -o yaml prints it", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(named("a")), "\n", "\n  "), []string{"a"}, nil},
		{"another kind, with file and document", named("a") + "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\n", nil,
			[]string{"f.yaml document 2", "kind: StatefulSet (apps/v1)", "use kubectl"}},
		{"another kind in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: x}}\n", nil, []string{"items[0]", "kind: Secret"}},
		{"a kind with a typo", strings.ReplaceAll(named("a"), "CacheCluster", "CacheCluste"), nil, []string{`kind: CacheCluste: unknown kind`, "use CacheCluster"}},
		{"a MemberCache", strings.ReplaceAll(named("a"), "CacheCluster", "MemberCache"), nil, []string{"only the hub manager writes this kind"}},
		{"another version", strings.ReplaceAll(named("a"), "v1alpha1", "v9"), nil, []string{`"cache.reconcile-lab.io/v9"`, "use cache.reconcile-lab.io/v1alpha1"}},
		{"no kind", "metadata: {name: x}\n", nil, []string{"kind: required"}},
		{"no name", strings.ReplaceAll(named("a"), "{name: a}", "{}"), nil, []string{"metadata.name: required"}},
		{"a repeated key, of which one would win silently", named("a") + "spec: {}\n", nil, []string{`"spec" already set`}},
		{"text instead of an object", "hello\n", nil, []string{"not a Kubernetes object"}},
		{"broken YAML", "a: [\n", nil, []string{"f.yaml document 1"}},
		{"all problems are reported at once", "kind: One\n---\nkind: Two\n", nil, []string{"kind: One (no apiVersion)", "kind: Two"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			ms, err := decodeFile("f.yaml", strings.NewReader(tc.content))
			checkError(t, err, tc.wantError...)
			if tc.wantError != nil {
				return
			}
			var names []string
			for _, m := range ms {
				names = append(names, m.object.GetName())
			}
			if strings.Join(names, " ") != strings.Join(tc.want, " ") {
				t.Errorf("names %v, want %v", names, tc.want)
			}
		})
	}
}

func TestDecodeFile_RemovesServerFields(t *testing.T) {
	ms, err := decodeFile("f", strings.NewReader(strings.ReplaceAll(named("a"), "{name: a}",
		"{name: a, uid: u, resourceVersion: '1', generation: 3, creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [], labels: {k: v}}")+"status: {members: 1/1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := ms[0].object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"cache.reconcile-lab.io/v1alpha1","kind":"CacheCluster","metadata":{"labels":{"k":"v"},"name":"a"},"spec":{"placement":{"clusterSelector":{}}}}`
	if strings.TrimSpace(string(data)) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestReadManifests_ReadsFilesFoldersAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"b.yaml": named("b"), "a.json": `{"apiVersion":"cache.reconcile-lab.io/v1alpha1","kind":"CacheCluster","metadata":{"name":"a"}}`, "notes.txt": "no", "empty/x.txt": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason    string
		paths     []string
		want      string
		wantError string
	}{
		{"a folder is read in the order of its files, without other files", []string{dir}, "a b", ""},
		{"- is standard input, in the given order", []string{"-", filepath.Join(dir, "b.yaml")}, "stdin b", ""},
		{"a folder without manifests is an error", []string{filepath.Join(dir, "empty")}, "", "has no .yaml"},
		{"a missing file is an error", []string{filepath.Join(dir, "nope")}, "", "no such file"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			ms, err := readManifests(tc.paths, strings.NewReader(named("stdin")))
			if tc.wantError != "" {
				checkError(t, err, tc.wantError)
				return
			}
			checkError(t, err)
			var names []string
			for _, m := range ms {
				names = append(names, m.object.GetName())
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	_, err := readManifests([]string{"-"}, strings.NewReader("# nothing\n"))
	checkError(t, err, "no CacheCluster found")
}

func TestSetNamespaces_DefaultsAndChecks(t *testing.T) {
	inShop := strings.ReplaceAll(named("a"), "{name: a}", "{name: a, namespace: shop}")
	for _, tc := range []struct {
		reason, content, namespace string
		explicit                   bool
		want                       string
		wantError                  []string
	}{
		{"from the context without one of their own", named("a"), "mine", false, "mine", nil},
		{"their own without --namespace", inShop, "mine", false, "shop", nil},
		{"another one than --namespace", inShop, "mine", true, "", []string{"metadata.namespace: shop", "--namespace mine"}},
		{"two objects with one name are refused", named("a") + "---\n" + named("a"), "mine", false, "", []string{"document 2", "also defined in f document 1"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			ms, err := decodeFile("f", strings.NewReader(tc.content))
			if err != nil {
				t.Fatal(err)
			}
			err = setNamespaces(ms, tc.namespace, tc.explicit)
			checkError(t, err, tc.wantError...)
			if tc.wantError == nil && ms[0].object.GetNamespace() != tc.want {
				t.Errorf("namespace %q, want %q", ms[0].object.GetNamespace(), tc.want)
			}
		})
	}
}

// checkError fails the test unless err contains all parts, or is nil without parts.
func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 && err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Fatalf("error %v, want one with %q", err, p)
		}
	}
}

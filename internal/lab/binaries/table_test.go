package binaries

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestModules_AgreeWithTheWrapperModules(t *testing.T) {
	files := map[string]bool{}
	programs := map[string]string{}
	for _, m := range modules {
		for _, p := range m.Programs {
			if other, taken := programs[p.Name]; taken {
				t.Errorf("program %s is in %s and in %s", p.Name, other, m.Name)
			}
			programs[p.Name] = m.Name
			if p.BuildTime == "" {
				t.Errorf("%s has no build time", p.Name)
			}
		}
		for _, extension := range []string{".mod", ".sum", ".go.txt"} {
			files[m.Name+extension] = true
		}
		mod, err := wrappers.ReadFile("modules/" + m.Name + ".mod")
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(mod), "\nrequire "+m.Path+" "+m.Version+"\n") {
			t.Errorf("modules/%s.mod does not require %s %s", m.Name, m.Path, m.Version)
		}
		sum, err := wrappers.ReadFile("modules/" + m.Name + ".sum")
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(sum), m.Path+" "+m.Version+" h1:") {
			t.Errorf("modules/%s.sum does not pin %s %s", m.Name, m.Path, m.Version)
		}
		source, err := wrappers.ReadFile("modules/" + m.Name + ".go.txt")
		if err != nil {
			t.Error(err)
		}
		for _, p := range m.Programs {
			if p.Package != "." && !strings.Contains(string(source), `"`+p.Package+`"`) {
				t.Errorf("modules/%s.go.txt does not import %s, so its sums may be missing", m.Name, p.Package)
			}
		}
		for _, flag := range m.LDFlags {
			if version := regexp.MustCompile(`ersion=(v.*)$`).FindStringSubmatch(flag); version != nil && version[1] != m.Version {
				t.Errorf("%s: %s contains another version than %s", m.Name, flag, m.Version)
			}
		}
	}
	entries, err := fs.ReadDir(wrappers, "modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !files[e.Name()] {
			t.Errorf("modules/%s belongs to no module of the table", e.Name())
		}
	}
}

func TestModules_PinEveryStagingModuleOfKubernetesToOneRelease(t *testing.T) {
	mod, err := wrappers.ReadFile("modules/kubernetes.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(Version("kubernetes"), "v1.", "v0.", 1)
	replaced := regexp.MustCompile(`(?m)^\t(k8s\.io/\S+) => (\S+) (\S+)$`).FindAllStringSubmatch(string(mod), -1)
	if len(replaced) != 33 {
		t.Errorf("%d staging modules are replaced, Kubernetes has 33", len(replaced))
	}
	for _, r := range replaced {
		if r[1] != r[2] || r[3] != want {
			t.Errorf("%s: want itself at %s", r[0], want)
		}
	}
}

func TestFind_AcceptsOnlyExecutableFiles(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	want := filepath.Join(cache, "reconcile-lab", "bin", "etcd-"+Version("etcd"), "etcd")
	for _, test := range []struct {
		name string
		mode os.FileMode
		want bool
	}{
		{"no file", 0, false},
		{"a file that is not executable", 0o644, false},
		{"an executable", 0o755, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.mode != 0 {
				if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(want)
				if err := os.WriteFile(want, nil, test.mode); err != nil {
					t.Fatal(err)
				}
			}
			path, found, err := Find("etcd")
			if err != nil || path != want || found != test.want {
				t.Errorf("Find = %s, %v, %v; want %s, %v", path, found, err, want, test.want)
			}
		})
	}
}

func TestFind_ListsTheKnownProgramsForAnUnknownOne(t *testing.T) {
	_, _, err := Find("kubelt")
	if err == nil || !strings.Contains(err.Error(), `"kubelt"`) || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("error %v must contain the unknown name and the known ones", err)
	}
}

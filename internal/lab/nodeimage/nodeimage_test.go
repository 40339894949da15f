package nodeimage

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage/archive"
)

func TestTag_ContainsVersionAndHashOfInputs(t *testing.T) {
	want := regexp.MustCompile(`^reconcile-lab/node:` + regexp.QuoteMeta(binaries.Version("kubernetes")) + `-[0-9a-f]{10}$`)
	if !want.MatchString(Tag()) {
		t.Errorf("tag is %q, want %s", Tag(), want)
	}
	if first, second := Tag(), Tag(); first != second {
		t.Error("the tag changes without a change of inputs")
	}
}

func TestNodePrograms_AreAllKnownToPackageBinaries(t *testing.T) {
	var known []string
	for _, m := range binaries.Modules() {
		for _, p := range m.Programs {
			known = append(known, p.Name)
		}
	}
	for _, name := range nodePrograms {
		if !slices.Contains(known, name) {
			t.Errorf("package binaries does not provide %s", name)
		}
	}
}

func TestRecipeFile_FindsEveryNameThatTheCodeUses(t *testing.T) {
	// A missing file would be an empty file in the image.
	for _, name := range []string{
		"cni.conflist", "containerd.service", "containerd.toml", "default-storage.yaml", "entrypoint",
		"kubelet.service", "memcached-entrypoint", "preload.sh", "rootfs.sh",
	} {
		if recipeFile(name) == "" {
			t.Errorf("files/%s is missing or empty", name)
		}
	}
	if err := json.Unmarshal([]byte(recipeFile("cni.conflist")), &struct{}{}); err != nil {
		t.Errorf("cni.conflist: %v", err)
	}
	for i, document := range strings.Split(recipeFile("default-storage.yaml"), "\n---\n") {
		filled := strings.NewReplacer("{{provisioner}}", "p", "{{busybox}}", "b").Replace(document)
		var object struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(filled), &object); err != nil || object.Kind == "" {
			t.Errorf("default-storage.yaml, document %d: kind %q, error %v", i+1, object.Kind, err)
		}
		if strings.Contains(filled, "{{") {
			t.Errorf("default-storage.yaml, document %d: a placeholder remains", i+1)
		}
	}
}

func TestResolve_KeepsLinksInsideTheRoot(t *testing.T) {
	root := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("usr/lib/any-linux-gnu/libreal.so.1.2")
	link("lib", "usr/lib")
	link("usr/lib/any-linux-gnu/lib.so.1", "libreal.so.1.2")
	link("usr/lib/loader.so", "/lib/any-linux-gnu/lib.so.1")
	link("usr/lib/round", "round")
	want := filepath.Join(root, "usr/lib/any-linux-gnu/libreal.so.1.2")

	for _, name := range []string{"/usr/lib/any-linux-gnu/lib.so.1", canonicalPath("/lib/loader.so")} {
		got, err := resolve(root, name)
		if err != nil || got != want {
			t.Errorf("%s resolves to %s, %v; want %s", name, got, err, want)
		}
	}
	if _, err := resolve(root, "/usr/lib/round"); err == nil {
		t.Error("a link to itself resolved")
	}
	if _, err := resolve(root, "/usr/lib/missing"); !os.IsNotExist(err) {
		t.Errorf("a missing file returned %v", err)
	}
	layer, err := usrMergeLinks(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(archive.Layer{"/lib": {Link: "usr/lib"}}, layer); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestWorkDir_RemovesDirectoriesOfKilledBuilds(t *testing.T) {
	dir := t.TempDir()
	killed, _, err := workDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	work, done, err := workDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the directory of the killed build still exists (%v)", err)
	}
	done()
	if _, err := os.Stat(work); !os.IsNotExist(err) {
		t.Errorf("the directory of the finished build still exists (%v)", err)
	}
}

func TestRecipe_ContainsTheBuildSteps(t *testing.T) {
	for _, name := range []string{"images.go", "assemble.go", "libraries.go", "inputs.go", "pause/main.go", "exporter/main.go"} {
		if _, err := fs.Stat(recipe, name); err != nil {
			t.Errorf("a change of %s would not change the tag: %v", name, err)
		}
	}
}

package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type file struct {
	Type byte
	Mode int64
	Link string
	Data string
}

func read(t *testing.T, content []byte) (names []string, files map[string]file) {
	t.Helper()
	files = map[string]file{}
	reader := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		files[header.Name] = file{Type: header.Typeflag, Mode: header.Mode, Link: header.Linkname, Data: string(data)}
	}
}

func writeLayer(t *testing.T, layer Layer) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "layer.tar")
	if err := WriteLayer(path, layer); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestWriteLayer_SortsEntriesAndAddsParents(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer := Layer{
		"/usr/bin/tool": Program(program),
		"/etc/name":     Text("value"),
		"/bin":          {Link: "usr/bin"},
		"/tmp":          {Dir: true, Mode: os.ModeSticky | 0o777},
	}
	_, content := writeLayer(t, layer)
	names, files := read(t, content)

	wantNames := []string{"bin", "etc/", "etc/name", "tmp/", "usr/", "usr/bin/", "usr/bin/tool"}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	wantFiles := map[string]file{
		"bin":          {Type: tar.TypeSymlink, Mode: 0o777, Link: "usr/bin"},
		"etc/":         {Type: tar.TypeDir, Mode: 0o755},
		"etc/name":     {Type: tar.TypeReg, Mode: 0o644, Data: "value"},
		"tmp/":         {Type: tar.TypeDir, Mode: 0o1777},
		"usr/":         {Type: tar.TypeDir, Mode: 0o755},
		"usr/bin/":     {Type: tar.TypeDir, Mode: 0o755},
		"usr/bin/tool": {Type: tar.TypeReg, Mode: 0o755, Data: "code"},
	}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	_, again := writeLayer(t, layer)
	if !bytes.Equal(content, again) {
		t.Error("the same layer has other bytes the second time")
	}
}

func TestWriteLayer_LeavesNoFileAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	err := WriteLayer(filepath.Join(dir, "layer.tar"), Layer{"/gone": Program(filepath.Join(dir, "gone"))})
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error is %v, want os.ErrNotExist", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("%s remains", entries[0].Name())
	}
}

func TestWrite_NamesLayersByContentAndContainsSharedOnesOnce(t *testing.T) {
	shared, sharedContent := writeLayer(t, Layer{"/a": Text("a")})
	own, ownContent := writeLayer(t, Layer{"/b": Text("b")})
	var out bytes.Buffer
	err := Write(&out,
		Image{Tags: []string{"one:1"}, Architecture: "arm64", Config: Config{User: "1", Entrypoint: []string{"/a"}}, Layers: []string{shared}},
		Image{Tags: []string{"two:1", "two:2"}, Architecture: "arm64", Layers: []string{shared, own}},
	)
	if err != nil {
		t.Fatal(err)
	}
	_, files := read(t, out.Bytes())
	if len(files) != 5 {
		t.Errorf("%d files, want 2 layers, 2 configs and the manifest", len(files))
	}
	digest := func(content []byte) string {
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}

	var manifest []manifestEntry
	if err := json.Unmarshal([]byte(files["manifest.json"].Data), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 2 {
		t.Fatalf("the manifest contains %d images, want 2", len(manifest))
	}
	wantLayers := []string{digest(sharedContent) + ".tar", digest(ownContent) + ".tar"}
	if diff := cmp.Diff(wantLayers, manifest[1].Layers); diff != "" {
		t.Errorf("layers of the second image (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"two:1", "two:2"}, manifest[1].RepoTags); diff != "" {
		t.Errorf("tags of the second image (-want +got):\n%s", diff)
	}

	var config imageConfig
	if err := json.Unmarshal([]byte(files[manifest[0].Config].Data), &config); err != nil {
		t.Fatal(err)
	}
	want := imageConfig{
		Architecture: "arm64", OS: "linux",
		Config: Config{User: "1", Entrypoint: []string{"/a"}},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest(sharedContent)}},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("config of the first image (-want +got):\n%s", diff)
	}
}

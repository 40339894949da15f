package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddressOf_DerivesAddressesFromThoseThatKwokctlLists(t *testing.T) {
	artifacts := []string{
		"https://releases.example/v1/bin/linux/amd64/kube-apiserver",
		"https://releases.example/v1/bin/linux/amd64/kubectl",
		"https://etcd.example/v3/etcd-v3.6.16-linux-amd64.tar.gz#etcd",
	}
	for _, test := range []struct{ program, want string }{
		{"kube-apiserver", "https://releases.example/v1/bin/linux/amd64/kube-apiserver"},
		{"kubelet", "https://releases.example/v1/bin/linux/amd64/kubelet"},
		{"etcd", "https://etcd.example/v3/etcd-v3.6.16-linux-amd64.tar.gz#etcd"},
	} {
		if got, err := addressOf(artifacts, test.program); err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", test.program, got, err, test.want)
		}
	}
	if got, err := addressOf(artifacts[:2], "etcd"); err == nil {
		t.Errorf("etcd is not published with Kubernetes, but got address %s", got)
	}
}

func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sha(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

func TestDownload_AcceptsOnlyThePublishedChecksum(t *testing.T) {
	tarball := archive(t, map[string]string{"etcd-v3/README": "no", "etcd-v3/etcd": "the program"})
	for _, test := range []struct {
		name    string
		files   map[string]string
		path    string
		want    string
		failure string
	}{
		{"a program with its checksum file", map[string]string{"/bin/etcd": "the program", "/bin/etcd.sha256": sha("the program") + "\n"}, "/bin/etcd", "the program", ""},
		{"an archive with a list of checksums", map[string]string{"/v3/etcd.tar.gz": tarball, "/v3/SHA256SUMS": sha("other") + "  other.tar.gz\n" + sha(tarball) + "  etcd.tar.gz\n"}, "/v3/etcd.tar.gz#etcd", "the program", ""},
		{"a program with other content than published", map[string]string{"/bin/etcd": "tampered", "/bin/etcd.sha256": sha("the program")}, "/bin/etcd", "", "SHA-256"},
		{"a program without a checksum", map[string]string{"/bin/etcd": "the program"}, "/bin/etcd", "", "404"},
		{"an archive without the program", map[string]string{"/v3/etcd.tar.gz": archive(t, nil), "/v3/SHA256SUMS": sha(archive(t, nil)) + " *etcd.tar.gz\n"}, "/v3/etcd.tar.gz#etcd", "", "does not contain etcd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, ok := test.files[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(content))
			}))
			defer server.Close()
			dir := t.TempDir()
			err := download(t.Context(), quiet, modules[0], Program{Name: "etcd"}, server.URL+test.path, dir)
			entries, readErr := os.ReadDir(dir)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) || len(entries) > 0 {
					t.Errorf("error %v and files %v; want %q and none", err, entries, test.failure)
				}
				return
			}
			content, _ := os.ReadFile(filepath.Join(dir, "etcd"))
			if err != nil || string(content) != test.want || len(entries) != 1 || !executable(filepath.Join(dir, "etcd")) {
				t.Errorf("error %v, content %q, files %v", err, content, entries)
			}
		})
	}
}

func TestEnsure_BuildsProgramsThatCannotBeDownloaded(t *testing.T) {
	log := fakeGo(t, `case $out in *kwokctl*) printf '#!/bin/sh\necho http://127.0.0.1:1/kube-scheduler http://127.0.0.1:1/kube-apiserver\n' >"$out"; chmod 755 "$out";;
*) echo "$out" >>"$log/built"; `+compiles+`;; esac`)
	t.Setenv(sourceVariable, "")
	var steps []string
	if _, err := Ensure(t.Context(), func(step string) { steps = append(steps, step) }, "kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(log, "built")); err != nil {
		t.Error("kube-scheduler was not built")
	}
	if text := strings.Join(steps, "\n"); !strings.Contains(text, "building it instead") || !strings.Contains(text, "connection refused") {
		t.Errorf("no report contains the reason of the build:\n%s", text)
	}

	t.Setenv(sourceVariable, fromPublished)
	_, err := Ensure(t.Context(), quiet, "kube-apiserver")
	if err == nil || !strings.Contains(err.Error(), sourceVariable) {
		t.Errorf("error %v must contain %s", err, sourceVariable)
	}
}

func TestEnsure_RejectsAnUnknownSource(t *testing.T) {
	t.Setenv(sourceVariable, "internet")
	_, err := Ensure(t.Context(), quiet, "etcd")
	if err == nil || !strings.Contains(err.Error(), `"internet"`) {
		t.Errorf("error %v must contain the value", err)
	}
}

package binaries

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeGo puts a shell script named go on PATH and sets an empty cache. The script gets the
// -o argument as $out. fakeGo returns the directory that the script can write to ($log).
func fakeGo(t *testing.T, script string) string {
	t.Helper()
	dir, log := t.TempDir(), t.TempDir()
	content := "#!/bin/sh\nfor a; do [ \"$last\" = -o ] && out=$a; last=$a; done\nlog=" + log + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(sourceVariable, fromBuild)
	return log
}

const compiles = `echo example.com/package; printf '#!/bin/sh\n' >"$out"; chmod 755 "$out"`

func quiet(string) {}

func cachedFiles(t *testing.T) []string {
	t.Helper()
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != ".lock" {
			found = append(found, entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEnsure_BuildsAMissingProgramOnceForManyCallers(t *testing.T) {
	log := fakeGo(t, `echo "$out" >>"$log/built"; sleep 0.2; `+compiles)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			paths, err := Ensure(t.Context(), quiet, "kwok", "kwokctl", "kwok")
			if err != nil {
				t.Error(err)
			}
			for name, path := range paths {
				if !executable(path) {
					t.Errorf("%s: %s is not executable", name, path)
				}
			}
		})
	}
	wg.Wait()
	built, err := os.ReadFile(filepath.Join(log, "built"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(built), "\n"); n != 2 {
		t.Errorf("the Go tool ran %d times for two programs:\n%s", n, built)
	}
}

func TestEnsure_InterruptedBuildLeavesNoFileAndNoProcess(t *testing.T) {
	log := fakeGo(t, `echo half >"$out"; (trap '' INT; sleep 60; echo survived >"$log/survived") & echo $! >"$log/pid"; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := Ensure(ctx, quiet, "etcd")
		done <- err
	}()
	pid := waitForFile(t, filepath.Join(log, "pid"))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if left := cachedFiles(t); len(left) > 0 {
		t.Errorf("remaining in the cache: %v", left)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("compiler %s still runs", pid)
		}
	}
}

func waitForFile(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if content, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(content), "\n") {
			return strings.TrimSpace(string(content))
		}
	}
	t.Fatalf("%s did not appear", path)
	return ""
}

func TestEnsure_FailedBuildNamesTheRemedy(t *testing.T) {
	for _, test := range []struct {
		name, script, want string
	}{
		{"the disk is full", `echo "write /tmp/x: no space left on device" >&2; exit 1`, "GOCACHE"},
		{"the network is unreachable", `echo "go: example.com/m@v1.0.0: dial tcp: lookup proxy.example: no such host" >&2; exit 1`, "GOPROXY"},
		{"the kernel kills the compiler", `echo "example.com/p: /compile: signal: killed" >&2; exit 1`, "memory"},
		{"any other failure", `echo "p.go:1:1: undefined: x" >&2; exit 1`, "undefined: x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeGo(t, test.script)
			_, err := Ensure(t.Context(), quiet, "etcd")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "etcd") {
				t.Errorf("error %v must contain etcd and %q", err, test.want)
			}
			if left := cachedFiles(t); len(left) > 0 {
				t.Errorf("remaining in the cache: %v", left)
			}
		})
	}
}

func TestEnsure_ReportsAMissingGoToolchain(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(sourceVariable, fromBuild)
	_, err := Ensure(t.Context(), quiet, "etcd")
	if err == nil || !strings.Contains(err.Error(), "Go toolchain") {
		t.Errorf("error %v must name the missing Go toolchain", err)
	}
}

func TestAssets_ContainsWorkingLinks(t *testing.T) {
	fakeGo(t, compiles)
	for range 2 {
		dir, err := Assets(t.Context(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
			if !executable(filepath.Join(dir, name)) {
				t.Errorf("%s is missing in %s", name, dir)
			}
		}
	}
}

func TestProgress_SeparatesPackagesFromMessages(t *testing.T) {
	p := &progress{}
	for _, part := range []string{"go: downloading example.com/m v1.0.0\nexample.com/a\nexam", "ple.com/b\nb.go:1:1: wrong\ntail"} {
		if _, err := p.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if p.packages() != 2 || p.errors() != "b.go:1:1: wrong\ntail" {
		t.Errorf("%d packages and %q", p.packages(), p.errors())
	}
}

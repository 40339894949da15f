package docker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onPath puts a script of that name first on PATH.
func onPath(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestCheck_ErrorsNameTheRemedy(t *testing.T) {
	tests := map[string]struct {
		script string // empty if docker is missing
		want   []string
	}{
		"docker is missing":       {"", []string{"docker is not installed", "make docker"}},
		"no daemon answers":       {"echo 'Cannot connect to the Docker daemon' >&2; exit 1", []string{"no Docker daemon answers", "make docker", "Cannot connect"}},
		"the disk is full":        {"echo 'write /x: no space left on device' >&2; exit 1", []string{"disk is full", "docker system prune"}},
		"the last line of docker": {"echo 'a warning' >&2; echo 'the reason' >&2; exit 1", []string{"docker info: the reason"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.script == "" {
				t.Setenv("PATH", t.TempDir())
			} else {
				onPath(t, "docker", test.script)
			}
			err := Check(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error is %q, want one with %q", err, want)
				}
			}
		})
	}
}

func TestRun_ReturnsTheErrorOfTheContext(t *testing.T) {
	onPath(t, "docker", "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, "info"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

// TestRuntimeWrapper_RemovesTheCapability runs the wrapper with a runc that prints its
// arguments.
func TestRuntimeWrapper_RemovesTheCapability(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("the wrapper needs jq, which is not installed")
	}
	const process = `{"capabilities":{"bounding":["CAP_SYS_RESOURCE","CAP_KILL"],"effective":["CAP_SYS_RESOURCE"]},"oomScoreAdj":-999,"rlimits":[{"type":"RLIMIT_NOFILE"}],"cwd":"/"}`
	const lowered = `{"capabilities":{"bounding":["CAP_KILL"],"effective":[]},"oomScoreAdj":0,"cwd":"/"}`
	wrapper, err := filepath.Abs("../../../hack/docker/runc-no-sys-resource")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		file, content, want string
		args                func(dir string) []string
	}{
		"the bundle of a new container": {
			"config.json", `{"ociVersion":"1.0.2","process":` + process + `}`, `{"ociVersion":"1.0.2","process":` + lowered + `}`,
			func(dir string) []string { return []string{"create", "--bundle", dir, "name"} },
		},
		"the process of an exec": {
			"process.json", process, lowered,
			func(dir string) []string {
				return []string{"exec", "--process", filepath.Join(dir, "process.json"), "name"}
			},
		},
		"a positive OOM score is unchanged": {
			"process.json", `{"oomScoreAdj":100}`, `{"oomScoreAdj":100}`,
			func(dir string) []string {
				return []string{"exec", "--process", filepath.Join(dir, "process.json"), "name"}
			},
		},
		"other commands are unchanged": {
			"config.json", `{"process":` + process + `}`, `{"process":` + process + `}`,
			func(string) []string { return []string{"kill", "name", "TERM"} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			onPath(t, "runc", `printf '%s ' "$@"`)
			dir := t.TempDir()
			file := filepath.Join(dir, test.file)
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			args := test.args(dir)
			out, err := exec.CommandContext(t.Context(), wrapper, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got, want := strings.TrimSpace(string(out)), strings.Join(args, " "); got != want {
				t.Errorf("runc got %q, want %q", got, want)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, string(got))); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

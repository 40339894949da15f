package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary act as a program of a lab: under the name lab-program it
// sleeps until it is killed.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "lab-program") {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Link(self, path); err != nil {
		content, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestStop_EndsOnlyTheProcessesOfTheDirectory(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	dir1, dir10 := filepath.Join(dir, "member-1"), filepath.Join(dir, "member-10")
	path := program(t, "lab-program")
	for _, target := range []string{dir1, dir10} {
		if _, err := Start(filepath.Join(dir, "log"), path, "--data="+target+"/etcd"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = Stop(ctx, 0, dir, "lab-program") })

	if found, err := Find(dir1, "lab-program"); err != nil || len(found) != 1 {
		t.Fatalf("found %v (%v), want only the process of member-1", found, err)
	}
	if found, err := Find(dir1, "other-program"); err != nil || len(found) != 0 {
		t.Fatalf("found %v (%v) under a name that no process was started under", found, err)
	}
	if err := Stop(ctx, 5*time.Second, dir1, "lab-program"); err != nil {
		t.Fatal(err)
	}
	if found, _ := Find(dir1, "lab-program"); len(found) != 0 {
		t.Errorf("still running after Stop: %v", found)
	}
	if found, _ := Find(dir10, "lab-program"); len(found) != 1 {
		t.Errorf("Stop of member-1 ended the process of member-10: %v remain", found)
	}
}

func TestBelongs_ComparesProgramAndDirectory(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want bool
	}{
		{"a component whose data is in the directory", []string{"/cache/etcd", "--data-dir=/state/hub/etcd"}, true},
		{"a component of a directory whose name has the same prefix", []string{"/cache/etcd", "--data-dir=/state/hub-2/etcd"}, false},
		{"an editor that shows a file of the directory", []string{"vi", "/state/hub/logs/etcd.log"}, false},
		{"a component without arguments", []string{"/cache/etcd"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := belongs(Process{Args: test.args}, "/state/hub", []string{"etcd"}); got != test.want {
				t.Errorf("belongs = %v, want %v", got, test.want)
			}
		})
	}
}

func TestPause_StopsAProcessUntilResume(t *testing.T) {
	dir := t.TempDir()
	started, err := Start(filepath.Join(dir, "log"), program(t, "lab-program"), "--data="+dir+"/etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Stop(context.Background(), 0, dir, "lab-program") })
	found, err := Find(dir, "lab-program")
	if err != nil || len(found) != 1 || found[0].PID != started.PID {
		t.Fatalf("found %v, %v; want process %d", found, err, started.PID)
	}
	if err := Pause(found...); err != nil {
		t.Fatal(err)
	}
	waitForState(t, started.PID, "T")
	if err := Resume(found...); err != nil {
		t.Fatal(err)
	}
	waitForState(t, started.PID, "S")
}

// waitForState waits until the kernel reports one of the states for the process.
func waitForState(t *testing.T, pid int, states string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("needs /proc")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, fields, _ := strings.Cut(string(content), ") ")
		if strings.Contains(states, fields[:1]) {
			return
		}
	}
	t.Fatalf("process %d does not reach state %s", pid, states)
}

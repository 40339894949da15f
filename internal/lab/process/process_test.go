package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test program the program that a lab would run: started under
// another name, it only waits to be ended.
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

func TestAStartedProgramIsFoundByItsFolderOnlyAndStopped(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	mine, other := filepath.Join(dir, "member-1"), filepath.Join(dir, "member-10")
	path := program(t, "lab-program")
	for _, folder := range []string{mine, other} {
		if _, err := Start(filepath.Join(dir, "log"), path, "--data="+folder+"/etcd"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = Stop(ctx, 0, dir, "lab-program") })

	if found, err := Find(mine, "lab-program"); err != nil || len(found) != 1 {
		t.Fatalf("found %v (%v), want just the process of member-1", found, err)
	}
	if found, err := Find(mine, "other-program"); err != nil || len(found) != 0 {
		t.Fatalf("found %v (%v) under a name that nothing was started under", found, err)
	}
	if err := Stop(ctx, 5*time.Second, mine, "lab-program"); err != nil {
		t.Fatal(err)
	}
	if found, _ := Find(mine, "lab-program"); len(found) != 0 {
		t.Errorf("still running after Stop: %v", found)
	}
	if found, _ := Find(other, "lab-program"); len(found) != 1 {
		t.Errorf("Stop of member-1 hit member-10: %v left", found)
	}
}

func TestAProcessBelongsToALab(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want bool
	}{
		{"a component with its data in the folder", []string{"/cache/etcd", "--data-dir=/state/hub/etcd"}, true},
		{"a component of a folder whose name only begins alike", []string{"/cache/etcd", "--data-dir=/state/hub-2/etcd"}, false},
		{"an editor that shows a file of the folder", []string{"vi", "/state/hub/logs/etcd.log"}, false},
		{"a component without arguments", []string{"/cache/etcd"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := belongs(Process{Args: test.args}, "/state/hub", []string{"etcd"}); got != test.want {
				t.Errorf("belongs = %v, want %v", got, test.want)
			}
		})
	}
}

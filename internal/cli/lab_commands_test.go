package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

func runLab(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"reconcile-lab"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestLabCommands_WithoutLabOrWithInvalidInput(t *testing.T) {
	for _, test := range []struct {
		name     string
		args     []string
		code     int
		out, err string
	}{
		{"clusters -o json prints an empty list", []string{"clusters", "-o", "json"}, exitOK, "[]\n", ""},
		{"clusters prints the fix", []string{"clusters"}, exitError, "", "reconcile-lab up"},
		{"env prints the fix", []string{"env"}, exitError, "", "reconcile-lab up"},
		{"down has nothing to remove", []string{"down"}, exitOK, "no lab found", ""},
		{"down of every lab has nothing to remove", []string{"down", "--all"}, exitOK, "no lab found", ""},
		{"down of all labs and of one", []string{"down", "--all", "--name", "a"}, exitUsage, "", "--all"},
		{"a lab without members", []string{"up", "--members", "0"}, exitUsage, "", "--members: 0: must be 1 to 100"},
		{"an unknown provider", []string{"up", "--provider", "minikube"}, exitUsage, "", `provider: "minikube": must be one of: embedded, kind`},
		{"a path as the name", []string{"up", "--name", "../a"}, exitUsage, "", "../a"},
		{"down of an unknown lab", []string{"down", "--name", "nolab"}, exitOK, "lab nolab not found\n", ""},
		{"a fault without a lab", []string{"inject", "drift"}, exitError, "", "reconcile-lab up"},
		{"a fault in an unknown lab", []string{"inject", "drift", "--lab", "nolab"}, exitUsage, "", "nolab"},
		{"a fault outside of a lab", []string{"inject", "drift", "--kubeconfig", "x"}, exitUsage, "", "--lab"},
		{"a missing fault", []string{"inject"}, exitUsage, "", "fault: required"},
		{"an unknown fault", []string{"inject", "earthquake"}, exitUsage, "", "member-down MEMBER"},
		{"a flag of another fault", []string{"inject", "slow", "member-1", "--code", "500"}, exitUsage, "", "--latency"},
		{"an extra argument", []string{"inject", "hub-kill", "member-1"}, exitUsage, "", "takes no argument"},
		{"two faults to undo", []string{"inject", "--undo", "a", "b"}, exitUsage, "", "or none to undo all"},
		{"two different names", []string{"clusters", "--name", "a", "--lab", "b"}, exitUsage, "", "one of them"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(lab.StateVariable, filepath.Join(t.TempDir(), "labs"))
			code, out, err := runLab(t, test.args...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(err, test.err) {
				t.Errorf("exit code %d, want %d\nout: %s\nerr: %s", code, test.code, out, err)
			}
		})
	}
}

// labFolder creates the files of a lab as up does, complete or interrupted.
func labFolder(t *testing.T, name string, files ...string) {
	t.Helper()
	root, err := lab.Root()
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, name), 0o700)
	}
	for _, file := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, file), []byte(name+"\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDown_RemovesOnlyLabOfLastUp(t *testing.T) {
	t.Setenv(lab.StateVariable, filepath.Join(t.TempDir(), "labs"))
	labFolder(t, "a")
	labFolder(t, "b", "current")
	labFolder(t, "half", "begun")
	for _, want := range []string{"lab half removed\n", "lab b removed\n", "the lab of the last up is already removed; other labs: a; remove one with ", "the lab of the last up is already removed; other labs: a"} {
		if code, out, errOut := runLab(t, "down"); code != exitOK || !strings.HasPrefix(out, want) {
			t.Errorf("exit code %d, out %q, err %q; want %q", code, out, errOut, want)
		}
	}
	for _, want := range []string{"lab a removed\n", "lab a not found\n"} {
		if code, out, _ := runLab(t, "down", "--name", "a"); code != exitOK || out != want {
			t.Errorf("exit code %d, out %q, want %q", code, out, want)
		}
	}
}

func TestLabProgress_PrintsOneLinePerStepWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newLabProgress(&out)
	p.report("", "building etcd")
	p.report("hub", "waiting for the API server")
	p.report("hub", "waiting for the API server")
	p.report("hub", lab.Done)
	p.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"lab: building etcd", "hub: waiting for the API server", "hub: ready"}
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want[i])
		}
	}
}

func TestLabProgress_DrawsSortedTruncatedRowsOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := &labProgress{view: newProgressView(&out), start: time.Now(), steps: map[string]labStep{}}
	p.view.size = func() (int, int) { return 30, 24 }
	for _, subject := range []string{"member-10", "member-9", "hub", ""} {
		p.report(subject, "waiting for something with a very long name")
	}
	var order []string
	for _, row := range p.view.drawn {
		if n := len([]rune(row)); n >= 30 {
			t.Errorf("%q has %d columns and would wrap at 30", row, n)
		}
		order = append(order, strings.TrimSuffix(strings.Fields(row)[0], ":"))
	}
	if got := strings.Join(order, " "); got != "lab hub member-9 member-10" {
		t.Errorf("order is %s", got)
	}
	out.Reset()
	p.report("member-10", lab.Done)
	if got, want := out.String(), "\x1b[1A\rmember-10: ready\x1b[K\x1b[1B\r"; got != want {
		t.Errorf("the second drawing is %q, want %q", got, want)
	}
}

func TestExportLine_QuotesAnyPath(t *testing.T) {
	if got := exportLine("KUBECONFIG", "/tmp/it's here/$x"); got != `export KUBECONFIG='/tmp/it'\''s here/$x'` {
		t.Error(got)
	}
}

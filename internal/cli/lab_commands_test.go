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

func TestLabCommandsWithoutALabOrWithWrongInput(t *testing.T) {
	for _, test := range []struct {
		name     string
		args     []string
		code     int
		out, err string
	}{
		{"clusters for scripts is an empty list", []string{"clusters", "-o", "json"}, exitOK, "[]\n", ""},
		{"clusters for people says what to do", []string{"clusters"}, exitError, "", "reconcile-lab up"},
		{"env says what to do", []string{"env"}, exitError, "", "reconcile-lab up"},
		{"down has nothing to do", []string{"down"}, exitOK, "there is no lab", ""},
		{"down of every lab has nothing to do", []string{"down", "--all"}, exitOK, "there is no lab", ""},
		{"down of all and of one", []string{"down", "--all", "--name", "a"}, exitUsage, "", "--all"},
		{"a lab without members", []string{"up", "--members", "0"}, exitUsage, "", "--members 0"},
		{"an unknown provider", []string{"up", "--provider", "minikube"}, exitUsage, "", "minikube"},
		{"a name that is a path", []string{"up", "--name", "../a"}, exitUsage, "", "../a"},
		{"down of a lab that there is not", []string{"down", "--name", "nolab"}, exitOK, "there is no lab nolab\n", ""},
		{"a fault without a lab", []string{"inject", "drift"}, exitError, "", "reconcile-lab up"},
		{"a fault in a lab that there is not", []string{"inject", "drift", "--lab", "nolab"}, exitUsage, "", "there is no lab nolab"},
		{"a fault of no lab", []string{"inject", "drift", "--kubeconfig", "x"}, exitUsage, "", "--lab"},
		{"no fault", []string{"inject"}, exitUsage, "", "name a fault"},
		{"a fault that there is not", []string{"inject", "earthquake"}, exitUsage, "", "member-down MEMBER"},
		{"a flag of another fault", []string{"inject", "slow", "member-1", "--code", "500"}, exitUsage, "", "--latency"},
		{"an argument too many", []string{"inject", "hub-kill", "member-1"}, exitUsage, "", "takes no argument"},
		{"two undos at once", []string{"inject", "--undo", "a", "b"}, exitUsage, "", "or none for all"},
		{"two names that differ", []string{"clusters", "--name", "a", "--lab", "b"}, exitUsage, "", "one of them"},
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

// As up leaves a lab behind that it did not make to the end, or did.
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

func TestDownTakesTheLabOfTheLastUpAndNoOther(t *testing.T) {
	t.Setenv(lab.StateVariable, filepath.Join(t.TempDir(), "labs"))
	labFolder(t, "a")
	labFolder(t, "b", "current")
	labFolder(t, "half", "begun")
	for _, want := range []string{"lab half is removed\n", "lab b is removed\n", "the lab of the last up is gone; there is still a: remove it with ", "the lab of the last up is gone; there is still a"} {
		if code, out, errOut := runLab(t, "down"); code != exitOK || !strings.HasPrefix(out, want) {
			t.Errorf("exit code %d, out %q, err %q; want %q", code, out, errOut, want)
		}
	}
	for _, want := range []string{"lab a is removed\n", "there is no lab a\n"} {
		if code, out, _ := runLab(t, "down", "--name", "a"); code != exitOK || out != want {
			t.Errorf("exit code %d, out %q, want %q", code, out, want)
		}
	}
}

func TestProgressWithoutATerminalIsALineForEachNewStep(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
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

func TestLiveProgressDrawsOneLineForEachClusterInOrderAndCutsLongOnes(t *testing.T) {
	var out bytes.Buffer
	p := &labProgress{out: &out, start: time.Now(), steps: map[string]labStep{}, live: true, width: 30}
	for _, subject := range []string{"member-10", "member-9", "hub", ""} {
		p.report(subject, "waiting for something with a very long name")
	}
	p.draw()
	first := out.String()
	var order []string
	for _, line := range strings.Split(strings.TrimSpace(first), "\n") {
		text := strings.TrimSuffix(line, "\x1b[K")
		if len(text) >= 30 {
			t.Errorf("%q would wrap on 30 columns", text)
		}
		order = append(order, strings.Fields(text)[0])
	}
	if got := strings.Join(order, " "); got != "lab hub member-9 member-10" {
		t.Errorf("order is %s", got)
	}
	out.Reset()
	p.draw()
	if !strings.HasPrefix(out.String(), "\x1b[4A") {
		t.Errorf("the second drawing does not go up 4 lines: %q", out.String())
	}
}

func TestShellLinesSurviveAnyPath(t *testing.T) {
	if got := exportLine("KUBECONFIG", "/tmp/it's here/$x"); got != `export KUBECONFIG='/tmp/it'\''s here/$x'` {
		t.Error(got)
	}
}

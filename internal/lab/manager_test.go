package lab

import (
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// TestMain lets the test binary act as a hub manager: under the name test-hub it is ready at
// once, or ends with a message.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "test-hub" {
		os.Exit(m.Run())
	}
	flags := flag.NewFlagSet("hub", flag.ExitOnError)
	flags.String("kubeconfig", "", "")
	metrics := flags.String("metrics-bind-address", "", "")
	flags.Bool("leader-elect", true, "")
	health := flags.String("health-probe-bind-address", "", "")
	if err := flags.Parse(os.Args[1:]); err != nil || os.Getenv("TEST_HUB_FAILS") != "" {
		_, _ = io.WriteString(os.Stderr, "cannot go on\n")
		os.Exit(1)
	}
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "leader_election_master_status{name=\"hub\"} 1\n")
	})
	go func() {
		server := &http.Server{Addr: *metrics, ReadHeaderTimeout: time.Second}
		_ = server.ListenAndServe()
	}()
	server := &http.Server{Addr: *health, ReadHeaderTimeout: time.Second}
	_ = server.ListenAndServe()
}

func labWithManager(t *testing.T) (*Lab, string) {
	t.Helper()
	stateRoot(t)
	l := open(t, "a")
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "test-hub")
	if err := os.WriteFile(binary, content, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(HubVariable, binary)
	t.Cleanup(func() { _ = process.Stop(context.Background(), 0, l.Dir, "test-hub") })
	return l, binary
}

func TestEnsureManager_RestartsOnlyAnOutdatedManager(t *testing.T) {
	l, binary := labWithManager(t)
	server := "https://127.0.0.1:1"
	var s State
	ensure := func() int {
		t.Helper()
		if err := l.ensureManager(t.Context(), &s, server, func(string) {}); err != nil {
			t.Fatal(err)
		}
		saved, err := l.Load()
		if err != nil || saved.Manager == nil {
			t.Fatalf("saved is %+v, %v", saved, err)
		}
		found, err := process.Find(l.Dir, "test-hub")
		if err != nil || len(found) != 1 || found[0].PID != saved.Manager.PID {
			t.Fatalf("running are %+v, %v; saved is process %d", found, err, saved.Manager.PID)
		}
		s = saved
		return found[0].PID
	}
	first := ensure()
	if again := ensure(); again != first {
		t.Errorf("restarted without a reason")
	}
	for reason, change := range map[string]func(){
		"the hub's address changed": func() { server = "https://127.0.0.1:2" },
		"the binary is newer": func() {
			if err := os.Chtimes(binary, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		},
		"the process has ended": func() {
			if err := process.Stop(t.Context(), 0, l.Dir, "test-hub"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		before := ensure()
		change()
		if after := ensure(); after == before {
			t.Errorf("not restarted though %s", reason)
		}
	}
	if err := l.stopManager(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if found, _ := process.Find(l.Dir, "test-hub"); len(found) > 0 {
		t.Errorf("still running: %+v", found)
	}
}

func TestEnsureManager_QuotesTheLogOfAManagerThatEnds(t *testing.T) {
	l, _ := labWithManager(t)
	t.Setenv("TEST_HUB_FAILS", "yes")
	err := l.ensureManager(t.Context(), &State{}, "", func(string) {})
	if err == nil || !strings.Contains(err.Error(), "cannot go on") {
		t.Errorf("error %v must quote the log", err)
	}
}

func TestFindManager_NamesTheRemedyForAMissingBinary(t *testing.T) {
	t.Setenv(HubVariable, "")
	if _, err := findManager(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v must contain make build", err)
	}
}

func TestParseLeader_DistinguishesLeaderFromStandby(t *testing.T) {
	for metrics, want := range map[string]bool{
		"go_info 1\nleader_election_master_status{name=\"hub\"} 1\n": true,
		"leader_election_master_status{name=\"hub\"} 0\n":            false,
		"go_info 1\n": false,
	} {
		if got := parseLeader(strings.NewReader(metrics)); got != want {
			t.Errorf("%q: leader is %v", metrics, got)
		}
	}
}

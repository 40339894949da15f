package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// HubVariable is the environment variable with the path of the hub manager's binary. By
// default the binary is in the directory of the CLI.
const HubVariable = "RECONCILE_LAB_HUB"

const managerLog = "hub.log"

// Manager is a hub manager that runs as a process of this machine.
type Manager struct {
	PID    int    `json:"pid"`
	Binary string `json:"binary"`
	// Built is the modification time of the binary. A newer binary causes a restart.
	Built time.Time `json:"built"`
	// Server is the address of the hub when the process started.
	Server string `json:"server"`
	// Metrics and Health are listen addresses on 127.0.0.1.
	Metrics string `json:"metrics"`
	Health  string `json:"health"`
}

// findManager returns the path of the hub manager's binary.
func findManager() (string, error) {
	if path := os.Getenv(HubVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", HubVariable, err)
		}
		return filepath.Abs(path)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	for _, candidate := range []string{"hub", filepath.Join("bin", "hub")} {
		path := filepath.Join(filepath.Dir(self), candidate)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("no hub manager in the directory of %s; run make build, or set %s to the path of its binary", self, HubVariable)
}

// managerArguments returns the arguments of the hub manager.
func (l *Lab) managerArguments(m Manager) []string {
	return []string{
		"--kubeconfig=" + l.Kubeconfig(),
		"--metrics-bind-address=" + m.Metrics,
		"--health-probe-bind-address=" + m.Health,
		// As in production, so that a second manager can run as a standby.
		"--leader-elect=true",
	}
}

// ensureManager starts the hub manager. It restarts a manager that does not answer, and one
// whose arguments, binary or hub address are outdated.
func (l *Lab) ensureManager(ctx context.Context, state *State, server string, report Report) error {
	binary, err := findManager()
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	if m := state.Manager; m != nil && m.Binary == binary && m.Built.Equal(info.ModTime()) && m.Server == server && l.managerRuns(*m) && isReady(ctx, m.Health) {
		return nil
	}
	if err := l.stopManager(ctx, state); err != nil {
		return err
	}

	report("starting the hub manager")
	m := Manager{Binary: binary, Built: info.ModTime(), Server: server}
	if m.Metrics, m.Health, err = freeAddresses(); err != nil {
		return err
	}
	// Saved before the start: Down finds the process by the name of the binary, even after
	// an interruption.
	state.Manager = &m
	if err := l.save(*state); err != nil {
		return err
	}
	started, err := process.Start(l.path(managerLog), binary, l.managerArguments(m)...)
	if err != nil {
		return err
	}
	m.PID = started.PID
	if err := l.save(*state); err != nil {
		return err
	}
	return l.waitForManager(ctx, m, started, report)
}

// waitForManager waits until the started manager is ready and the leader.
func (l *Lab) waitForManager(ctx context.Context, m Manager, started *process.Started, report Report) error {
	log := l.path(managerLog)
	report("waiting for the hub manager to be ready")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-started.Exited:
			return false, fmt.Errorf("the hub manager ended: %s (log: %s)", lastLine(log), log)
		default:
			return isReady(ctx, m.Health), nil
		}
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("the hub manager is not ready after 1 minute; see its log, %s", log)
	}
	if err != nil {
		return err
	}
	return waitForLeadership(ctx, m, report)
}

// ErrNoManager is the error of a lab whose hub manager is not a process of this machine.
var ErrNoManager = errors.New("the hub manager of the lab is not a process of this machine")

// KillManager kills the hub manager with SIGKILL, so that it cannot shut down gracefully.
func (l *Lab) KillManager(ctx context.Context) error {
	state, err := l.Load()
	if err != nil {
		return err
	}
	if state.Manager == nil {
		return ErrNoManager
	}
	return process.Stop(ctx, 0, l.Dir, filepath.Base(state.Manager.Binary))
}

// StartManager starts the hub manager of a lab unless it runs. It returns ErrNoManager for a
// lab without one.
func (l *Lab) StartManager(ctx context.Context, p Provider, report Report) error {
	unlock, err := l.lock(ctx, report)
	if err != nil {
		return err
	}
	defer unlock()
	state, err := l.Load()
	if err != nil {
		return err
	}
	if state.Manager == nil {
		return ErrNoManager
	}
	server, err := podServer(ctx, p, Hub)
	if err != nil {
		return err
	}
	return l.ensureManager(ctx, &state, server, report)
}

// managerRuns reports whether a process with the arguments of the manager runs.
func (l *Lab) managerRuns(m Manager) bool {
	found, err := process.Find(l.Dir, filepath.Base(m.Binary))
	// A process with other arguments is a second manager that the user has started.
	return err == nil && slices.ContainsFunc(found, func(p process.Process) bool {
		return slices.Equal(p.Args, append([]string{m.Binary}, l.managerArguments(m)...))
	})
}

// stopManager stops the hub manager gracefully.
func (l *Lab) stopManager(ctx context.Context, state *State) error {
	if state.Manager == nil {
		return nil
	}
	if err := process.Stop(ctx, 5*time.Second, l.Dir, filepath.Base(state.Manager.Binary)); err != nil {
		return fmt.Errorf("stop the hub manager: %w", err)
	}
	state.Manager = nil
	return nil
}

// freeAddresses returns two addresses on 127.0.0.1 with free ports.
func freeAddresses() (first, second string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", errors.Join(err, a.Close())
	}
	return a.Addr().String(), b.Addr().String(), errors.Join(a.Close(), b.Close())
}

// lastLine returns the last line of a file.
func lastLine(path string) string {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "no output"
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	last := lines[len(lines)-1]
	// The manager logs JSON; a flag that it does not know is plain text.
	var entry struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(last), &entry) == nil && entry.Error != "" {
		return entry.Error
	}
	return last
}

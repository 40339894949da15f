package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// HubVariable names the hub manager's binary, where it is not beside the CLI.
const HubVariable = "RECONCILE_LAB_HUB"

const managerLog = "hub.log"

// Manager is the hub manager that runs as a process of this machine.
type Manager struct {
	PID    int    `json:"pid"`
	Binary string `json:"binary"`
	// Built is when the binary was: a newer one is a reason to restart.
	Built time.Time `json:"built"`
	// Server is the hub's address that the process read at its start.
	Server string `json:"server"`
	// Addresses on 127.0.0.1.
	Metrics string `json:"metrics"`
	Health  string `json:"health"`
}

// findManager looks where the binary may be.
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
	return "", fmt.Errorf("there is no hub manager beside %s: run make build, or name its binary in %s", self, HubVariable)
}

func (l *Lab) managerArguments(m Manager) []string {
	return []string{
		"--kubeconfig=" + l.Kubeconfig(),
		"--metrics-bind-address=" + m.Metrics,
		"--health-probe-bind-address=" + m.Health,
		// As in production, so that a second manager can be started beside it.
		"--leader-elect=true",
	}
}

// ensureManager starts the hub manager, or restarts it if it does not answer, runs
// with other arguments, or its binary or the hub's address changed.
func (l *Lab) ensureManager(ctx context.Context, s *State, server string, report Report) error {
	binary, err := findManager()
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	if m := s.Manager; m != nil && m.Binary == binary && m.Built.Equal(info.ModTime()) && m.Server == server && l.managerRuns(*m) && ready(ctx, m.Health) {
		return nil
	}
	if err := l.stopManager(ctx, s); err != nil {
		return err
	}

	report("starting the hub manager")
	m := Manager{Binary: binary, Built: info.ModTime(), Server: server}
	if m.Metrics, m.Health, err = twoAddresses(); err != nil {
		return err
	}
	// Recorded before the start, so that Down finds it by the binary's name however
	// this ends.
	s.Manager = &m
	if err := l.save(*s); err != nil {
		return err
	}
	log := l.path(managerLog)
	started, err := process.Start(log, binary, l.managerArguments(m)...)
	if err != nil {
		return err
	}
	m.PID = started.PID
	if err := l.save(*s); err != nil {
		return err
	}
	report("waiting for the hub manager to be ready")
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-started.Exited:
			return false, fmt.Errorf("the hub manager ended: %s (whole log: %s)", lastLine(log), log)
		default:
			return ready(ctx, m.Health), nil
		}
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("the hub manager is not ready after a minute: see its log, %s", log)
	}
	if err != nil {
		return err
	}
	return awaitLead(ctx, m, report)
}

// ErrNoManager says that a lab's manager is no process of this machine.
var ErrNoManager = errors.New("the lab's hub manager does not run as a process of this machine")

// KillManager kills the hub manager without a chance to put anything in order.
func (l *Lab) KillManager(ctx context.Context) error {
	s, err := l.Load()
	if err != nil {
		return err
	}
	if s.Manager == nil {
		return ErrNoManager
	}
	return process.Stop(ctx, 0, l.Dir, filepath.Base(s.Manager.Binary))
}

// StartManager starts the hub manager of a lab that has one, if it does not run.
func (l *Lab) StartManager(ctx context.Context, p Provider, report Report) error {
	unlock, err := l.lock(ctx, report)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.Load()
	if err != nil {
		return err
	}
	if s.Manager == nil {
		return ErrNoManager
	}
	server, err := podServer(ctx, p, Hub)
	if err != nil {
		return err
	}
	return l.ensureManager(ctx, &s, server, report)
}

func (l *Lab) managerRuns(m Manager) bool {
	found, err := process.Find(l.Dir, filepath.Base(m.Binary))
	// Others are somebody's second managers.
	return err == nil && slices.ContainsFunc(found, func(p process.Process) bool {
		return slices.Equal(p.Args, append([]string{m.Binary}, l.managerArguments(m)...))
	})
}

func (l *Lab) stopManager(ctx context.Context, s *State) error {
	if s.Manager == nil {
		return nil
	}
	if err := process.Stop(ctx, 5*time.Second, l.Dir, filepath.Base(s.Manager.Binary)); err != nil {
		return fmt.Errorf("stop the hub manager: %w", err)
	}
	s.Manager = nil
	return nil
}

func ready(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// twoAddresses asks the kernel for free ports.
func twoAddresses() (first, second string, err error) {
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

func lastLine(path string) string {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "it wrote nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return lines[len(lines)-1]
}

package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// stepTimeout limits each wait of Create. A busy machine with two cores needs half a
// minute for four API servers at once.
const stepTimeout = 2 * time.Minute

// running returns the processes of the cluster: those with the current arguments, and
// outdated ones, such as those of an earlier version.
func running(f files, ports ports) (current, outdated []process.Process, err error) {
	found, err := process.Find(f.dir, programs...)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range found {
		path, _, err := binaries.Find(p.Program())
		if err != nil {
			return nil, nil, err
		}
		if slices.Equal(p.Args, append([]string{path}, arguments(p.Program(), f, ports)...)) {
			current = append(current, p)
		} else {
			outdated = append(outdated, p)
		}
	}
	return current, outdated, nil
}

// runs reports whether one of the processes is an instance of the program.
func runs(processes []process.Process, program string) bool {
	return slices.ContainsFunc(processes, func(p process.Process) bool { return p.Program() == program })
}

// starter starts the missing programs of a cluster and waits for them.
type starter struct {
	files   files
	ports   ports
	started map[string]*process.Started
}

// programs starts the named programs unless they already run.
func (s *starter) programs(ctx context.Context, names ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	current, _, err := running(s.files, s.ports)
	if err != nil {
		return err
	}
	for _, name := range names {
		if runs(current, name) {
			continue
		}
		path, _, err := binaries.Find(name)
		if err != nil {
			return err
		}
		// The log must contain the output of this run only: explain quotes its last line.
		if err := os.WriteFile(s.files.log(name), nil, 0o600); err != nil {
			return err
		}
		p, err := process.Start(s.files.log(name), path, arguments(name, s.files, s.ports)...)
		if err != nil {
			return err
		}
		if s.started == nil {
			s.started = map[string]*process.Started{}
		}
		s.started[name] = p
	}
	return nil
}

// waitFor polls until done returns true. It fails early when a program that programs
// started has ended; the error quotes its log.
func (s *starter) waitFor(ctx context.Context, report lab.Report, step string, done wait.ConditionWithContextFunc) error {
	report(step)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		for name, p := range s.started {
			select {
			case <-p.Exited:
				return false, s.explain(name)
			default:
			}
		}
		return done(ctx)
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("%s: %w (%s), the machine may be too busy; run reconcile-lab up again; logs: %s",
			step, errNotReady, stepTimeout, s.files.path("logs"))
	}
	return err
}

// explain returns an error with the reason why a program ended.
func (s *starter) explain(name string) error {
	log, err := os.ReadFile(s.files.log(name))
	if err != nil {
		return err
	}
	text := string(bytes.TrimSpace(log))
	switch {
	case strings.Contains(text, "no space left on device"):
		return fmt.Errorf("%s ended: the disk is full; free some space, then run reconcile-lab up again", name)
	case strings.Contains(text, "address already in use"):
		return fmt.Errorf("%s ended: %w; run reconcile-lab up again, which chooses other ports", name, errPortLost)
	case text == "":
		return fmt.Errorf("%s ended without output: the kernel has probably killed it for lack of memory; close programs or use fewer members, then run reconcile-lab up again", name)
	}
	lines := strings.Split(text, "\n")
	return fmt.Errorf("%s ended: %s (log: %s)", name, lines[len(lines)-1], s.files.log(name))
}

// Package process starts the programs of a lab so that they outlive the CLI, and
// finds them again by their command line: a program is a lab's exactly when it was
// started under one of the given names and one of its arguments lies in the given
// folder. So no record of process ids can be lost or go stale, and a process that
// merely got the same id, or an editor that shows one of our files, is never hit.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is a running program.
type Process struct {
	PID  int
	Args []string
}

// Program is the file name that it was started under.
func (p Process) Program() string { return filepath.Base(p.Args[0]) }

// Find returns the processes of these programs that have an argument in the
// folder.
func Find(folder string, programs ...string) ([]Process, error) {
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return slices.DeleteFunc(all, func(p Process) bool { return !belongs(p, folder, programs) }), nil
}

func belongs(p Process, folder string, programs []string) bool {
	return len(p.Args) > 1 && slices.Contains(programs, p.Program()) &&
		slices.ContainsFunc(p.Args[1:], func(a string) bool { return strings.Contains(a, folder+string(filepath.Separator)) })
}

// Started is a program that this process started.
type Started struct {
	PID int
	// Exited is closed when the program has ended.
	Exited <-chan struct{}
}

// Start runs a program detached: in a session of its own, so that Ctrl-C does not
// reach it, with its output appended to the log.
func Start(log, program string, args ...string) (*Started, error) {
	return StartAs(program, log, program, args...)
}

// StartAs starts a program under another name, by which it is then found.
func StartAs(name, log, program string, args ...string) (*Started, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	cmd := exec.Command(program, args...)
	cmd.Args[0] = name
	cmd.Dir = filepath.Dir(log)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		// The log says why it ended.
		_ = cmd.Wait()
	}()
	return &Started{PID: cmd.Process.Pid, Exited: exited}, nil
}

// Stop ends the processes that Find returns. They get the grace to end by
// themselves; without any they are killed at once.
func Stop(ctx context.Context, grace time.Duration, folder string, programs ...string) error {
	if grace > 0 {
		gone, err := signal(folder, programs, syscall.SIGTERM)
		if err != nil || gone {
			return err
		}
		err = awaitGone(ctx, grace, folder, programs)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	if gone, err := signal(folder, programs, syscall.SIGKILL); err != nil || gone {
		return err
	}
	if err := awaitGone(ctx, 10*time.Second, folder, programs); err != nil {
		return fmt.Errorf("processes of %s do not end: %w", folder, err)
	}
	return nil
}

// Freeze stops processes without ending them: what they have open stays open.
func Freeze(processes ...Process) error {
	for _, p := range processes {
		if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("freeze %s (process %d): %w", p.Program(), p.PID, err)
		}
	}
	return nil
}

// Continue wakes processes that were frozen.
func Continue(processes ...Process) {
	for _, p := range processes {
		_ = syscall.Kill(p.PID, syscall.SIGCONT)
	}
}

func signal(folder string, programs []string, s syscall.Signal) (gone bool, err error) {
	found, err := Find(folder, programs...)
	if err != nil {
		return false, err
	}
	for _, p := range found {
		if err := syscall.Kill(p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, fmt.Errorf("end %s (process %d): %w", p.Program(), p.PID, err)
		}
	}
	return len(found) == 0, nil
}

func awaitGone(ctx context.Context, timeout time.Duration, folder string, programs []string) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		left, err := Find(folder, programs...)
		return len(left) == 0, err
	})
}

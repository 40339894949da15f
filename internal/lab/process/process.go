// Package process starts the programs of a lab so that they outlive the CLI, finds them
// again, and stops, pauses and resumes them.
//
// A process belongs to a lab if it has one of the given program names and the path of the
// given directory in an argument. No record of
// process IDs can be lost or become stale. A process that reuses an ID, or an editor that
// shows a file of the lab, is never signaled.
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

// killTimeout is how long the kernel may take to remove a process after SIGKILL.
const killTimeout = 10 * time.Second

// Process is a running program.
type Process struct {
	PID  int
	Args []string
}

// Program returns the file name under which the process was started.
func (p Process) Program() string { return filepath.Base(p.Args[0]) }

// Select returns the running processes for which match returns true.
func Select(match func(Process) bool) ([]Process, error) {
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return slices.DeleteFunc(all, func(p Process) bool { return !match(p) }), nil
}

// Find returns the processes of these programs that have an argument with a path below
// dir.
func Find(dir string, programs ...string) ([]Process, error) {
	return Select(func(p Process) bool { return belongs(p, dir, programs) })
}

func belongs(p Process, dir string, programs []string) bool {
	return len(p.Args) > 1 && slices.Contains(programs, p.Program()) &&
		slices.ContainsFunc(p.Args[1:], func(a string) bool { return strings.Contains(a, dir+string(filepath.Separator)) })
}

// Started is a program that this process started.
type Started struct {
	PID int
	// Exited is closed when the program has ended.
	Exited <-chan struct{}
}

// Start starts a program in a session of its own, so that Ctrl-C does not reach it. Its
// output is appended to the log.
func Start(log, program string, args ...string) (*Started, error) {
	return StartAs(program, log, program, args...)
}

// StartAs starts a program under another name. Find then finds it under that name.
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
		// The log contains the reason of the exit.
		_ = cmd.Wait()
	}()
	return &Started{PID: cmd.Process.Pid, Exited: exited}, nil
}

// Stop ends the processes that Find returns. It sends SIGTERM and, after the grace period,
// SIGKILL. Without a grace period it sends SIGKILL at once.
func Stop(ctx context.Context, grace time.Duration, dir string, programs ...string) error {
	if grace > 0 {
		none, err := signalAll(dir, programs, syscall.SIGTERM)
		if err != nil || none {
			return err
		}
		err = waitForExit(ctx, grace, dir, programs)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	if none, err := signalAll(dir, programs, syscall.SIGKILL); err != nil || none {
		return err
	}
	if err := waitForExit(ctx, killTimeout, dir, programs); err != nil {
		return fmt.Errorf("processes of %s still run after SIGKILL: %w", dir, err)
	}
	return nil
}

// Pause stops the execution of processes with SIGSTOP. Their connections stay open.
func Pause(processes ...Process) error { return signalEach(syscall.SIGSTOP, processes) }

// Resume continues paused processes with SIGCONT. A process that is not paused is not
// affected.
func Resume(processes ...Process) error { return signalEach(syscall.SIGCONT, processes) }

// signalAll signals the processes that Find returns. It reports whether there are none.
func signalAll(dir string, programs []string, signal syscall.Signal) (none bool, err error) {
	found, err := Find(dir, programs...)
	if err != nil {
		return false, err
	}
	return len(found) == 0, signalEach(signal, found)
}

// signalEach ignores processes that have ended.
func signalEach(signal syscall.Signal, processes []Process) error {
	for _, p := range processes {
		if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to %s (process %d): %w", signal, p.Program(), p.PID, err)
		}
	}
	return nil
}

func waitForExit(ctx context.Context, timeout time.Duration, dir string, programs []string) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		remaining, err := Find(dir, programs...)
		return len(remaining) == 0, err
	})
}

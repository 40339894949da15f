package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

const (
	// AgentProgram is the program name of background processes of faults. They are found by
	// this name, whatever the name of the CLI's binary is.
	AgentProgram = "reconcile-lab-fault"
	// AgentCommand is the hidden command of the CLI that background processes run.
	AgentCommand = "fault-agent"

	taskFile = "task.json"
	agentLog = "agent.log"

	// agentStopTimeout is the grace period of background processes.
	agentStopTimeout = 5 * time.Second
)

// task is the task of a background process. Exactly one field is set.
type task struct {
	Conflict *conflictTask `json:"conflict,omitempty"`
	Proxy    *proxyTask    `json:"proxy,omitempty"`
}

// Agent runs the task in a file until the task or ctx ends.
func Agent(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(content, &t); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case t.Conflict != nil:
		return t.Conflict.run(ctx)
	case t.Proxy != nil:
		return t.Proxy.run(ctx)
	}
	return fmt.Errorf("%s: contains no task", file)
}

// start runs a task in a process that outlives this one. name is the directory of its
// files.
func (i *Injector) start(name string, t task) (*process.Started, error) {
	dir := filepath.Join(faultDir(i.lab), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	content, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := lab.WriteFile(filepath.Join(dir, taskFile), content); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.StartAs(AgentProgram, filepath.Join(dir, agentLog), self, AgentCommand, filepath.Join(dir, taskFile))
}

// stop ends a task and deletes its files.
func (i *Injector) stop(ctx context.Context, name string) error {
	dir := filepath.Join(faultDir(i.lab), name)
	if err := process.Stop(ctx, agentStopTimeout, dir, AgentProgram); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// isRunning reports whether the process of a task runs.
func isRunning(l *lab.Lab, name string) bool {
	found, err := process.Find(filepath.Join(faultDir(l), name), AgentProgram)
	return err == nil && len(found) > 0
}

// StopAgents ends every background process of the faults of a lab that is removed.
func StopAgents(ctx context.Context, l *lab.Lab) error {
	err := process.Stop(ctx, agentStopTimeout, faultDir(l), AgentProgram)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

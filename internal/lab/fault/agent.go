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
	// AgentProgram is the name under which background processes of faults run: it is
	// by this name that they are found again, whatever the CLI's file is called.
	AgentProgram = "reconcile-lab-fault"
	// AgentCommand is the hidden command of the CLI that they run.
	AgentCommand = "fault-agent"

	taskFile = "task.json"
	agentLog = "agent.log"
)

// task is what a background process does; one of its fields is set.
type task struct {
	Fight *fightTask `json:"fight,omitempty"`
	Proxy *proxyTask `json:"proxy,omitempty"`
}

// Agent runs the task of a file until it ends or ctx does.
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
	case t.Fight != nil:
		return t.Fight.run(ctx)
	case t.Proxy != nil:
		return t.Proxy.run(ctx)
	}
	return fmt.Errorf("%s: there is nothing to do", file)
}

// start begins a task in a process that outlives this one. name is the folder of
// its files.
func (i *Injector) start(name string, t task) (*process.Started, error) {
	folder := filepath.Join(dir(i.Lab), name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	content, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := lab.WriteFile(filepath.Join(folder, taskFile), content); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.StartAs(AgentProgram, filepath.Join(folder, agentLog), self, AgentCommand, filepath.Join(folder, taskFile))
}

// stop ends a task and removes its files.
func (i *Injector) stop(ctx context.Context, name string) error {
	folder := filepath.Join(dir(i.Lab), name)
	if err := process.Stop(ctx, 5*time.Second, folder, AgentProgram); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// runs says whether a task goes on.
func runs(l *lab.Lab, name string) bool {
	found, err := process.Find(filepath.Join(dir(l), name), AgentProgram)
	return err == nil && len(found) > 0
}

// StopAgents ends every background process of a lab's faults, for a lab that is
// removed.
func StopAgents(ctx context.Context, l *lab.Lab) error {
	err := process.Stop(ctx, 5*time.Second, dir(l), AgentProgram)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

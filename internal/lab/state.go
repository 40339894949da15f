package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries/filelock"
)

// StateVariable is the environment variable that overrides the directory of all labs.
const StateVariable = "RECONCILE_LAB_STATE"

// Hub is the name of the hub's cluster and context in every lab.
const Hub = "hub"

// Lab identifies one lab, which need not exist.
type Lab struct {
	Name string
	// Dir is the directory with all files of the lab.
	Dir string
}

// State is the content of lab.json. It contains nothing that can be observed.
type State struct {
	Provider string   `json:"provider"`
	Members  []string `json:"members"`
	Manager  *Manager `json:"manager,omitempty"`
}

// Root returns the directory of all labs.
func Root() (string, error) {
	root := os.Getenv(StateVariable)
	if root == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			state = filepath.Join(home, ".local", "state")
		}
		root = filepath.Join(state, "reconcile-lab")
	}
	// Command lines of processes contain the path, so it must be the same at every call.
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	return filepath.Abs(root)
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$`)

// Open returns the lab with that name, whether or not it exists. It creates the directory of
// all labs.
func Open(name string) (*Lab, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("lab name %q: must have 1 to 30 characters a-z, 0-9 or '-', and must not begin or end with '-'", name)
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	// Again, since symbolic links can be resolved only in an existing path.
	if root, err = Root(); err != nil {
		return nil, err
	}
	return &Lab{Name: name, Dir: filepath.Join(root, name)}, nil
}

// Exists reports whether the directory of the lab exists.
func (l *Lab) Exists() bool {
	_, err := os.Stat(l.Dir)
	return err == nil
}

// Unknown returns the error for a lab that does not exist.
func Unknown(name string) error {
	labs, err := List()
	switch {
	case err != nil:
		return err
	case len(labs) == 0:
		return fmt.Errorf("lab %s not found; create it with reconcile-lab up --name %s", name, name)
	}
	return fmt.Errorf("lab %s not found; use one of: %s, or create it with reconcile-lab up --name %s", name, strings.Join(labs, ", "), name)
}

// List returns the names of the existing labs, sorted.
func List() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && validName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Current returns the lab of the last Up that completed, or the only lab, or "" if no lab
// exists. It returns an error if that lab was removed and several others exist.
func Current() (string, error) {
	name, err := readLabName(currentFile)
	if err != nil || name != "" {
		return name, err
	}
	labs, err := List()
	switch {
	case err != nil || len(labs) == 0:
		return "", err
	case len(labs) == 1:
		return labs[0], nil
	}
	return "", fmt.Errorf("the lab of the last up was removed; select a lab with --lab: %s", strings.Join(labs, ", "))
}

// LastUp returns the lab of the last Up, whether or not it completed, or "" if that lab was
// removed.
func LastUp() (string, error) {
	name, err := readLabName(begunFile)
	if err != nil || name != "" {
		return name, err
	}
	return readLabName(currentFile)
}

// Files in the directory of all labs. Each contains the name of a lab.
const (
	currentFile = "current" // the last Up that completed
	begunFile   = "begun"   // an Up that has not completed
)

// readLabName returns the name in such a file, or "" if that lab does not exist.
func readLabName(file string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(root, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(content))
	if _, err := os.Stat(filepath.Join(root, name)); !validName.MatchString(name) || err != nil {
		return "", nil
	}
	return name, nil
}

// makeCurrent records that Up has completed this lab.
func (l *Lab) makeCurrent() error {
	if err := l.writeLabName(currentFile); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(filepath.Dir(l.Dir), begunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeLabName writes the name of the lab to a file in the directory of all labs.
func (l *Lab) writeLabName(file string) error {
	return WriteFile(filepath.Join(filepath.Dir(l.Dir), file), []byte(l.Name+"\n"))
}

// Load returns the state of the lab. It returns the zero value if lab.json does not exist.
func (l *Lab) Load() (State, error) {
	var s State
	content, err := os.ReadFile(l.path("lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("%s is damaged: %w; remove the lab with reconcile-lab down --name %s", l.path("lab.json"), err, l.Name)
	}
	return s, nil
}

// save writes lab.json.
func (l *Lab) save(state State) error {
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(l.path("lab.json"), append(content, '\n'))
}

func (l *Lab) path(name string) string { return filepath.Join(l.Dir, name) }

// Kubeconfig returns the path of the merged kubeconfig. It has one context with admin access
// for each cluster.
func (l *Lab) Kubeconfig() string { return l.path("kubeconfig") }

// lock excludes other commands until the caller calls the returned function.
func (l *Lab) lock(ctx context.Context, report Report) (func(), error) {
	return filelock.Take(ctx, l.path(".lock"), func() { report("waiting for another command that changes this lab") })
}

// WriteFile writes a file atomically: a reader sees the old or the new content.
func WriteFile(path string, content []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

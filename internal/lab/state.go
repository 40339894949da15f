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

// StateVariable names the folder of all labs, in place of the usual one.
const StateVariable = "RECONCILE_LAB_STATE"

// Hub is the name of the hub's cluster and context in every lab.
const Hub = "hub"

// Lab is one lab, existing or to be made.
type Lab struct {
	Name string
	// Dir holds all of it.
	Dir string
}

// State is what a lab's lab.json records. What can be observed is not in it.
type State struct {
	Provider string   `json:"provider"`
	Members  []string `json:"members"`
	Manager  *Manager `json:"manager,omitempty"`
}

// Root is the folder of all labs.
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
	// Command lines of processes name it, so it must look the same every time.
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	return filepath.Abs(root)
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$`)

// Open returns the lab of that name, whether or not it exists.
func Open(name string) (*Lab, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("lab name %q: use 1 to 30 of a-z, 0-9 and '-', with neither end a '-'", name)
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	// Once more, as it may only now exist.
	if root, err = Root(); err != nil {
		return nil, err
	}
	return &Lab{Name: name, Dir: filepath.Join(root, name)}, nil
}

// Exists says whether there is anything of the lab.
func (l *Lab) Exists() bool {
	_, err := os.Stat(l.Dir)
	return err == nil
}

// Unknown is the error about a lab that there is not.
func Unknown(name string) error {
	labs, err := List()
	switch {
	case err != nil:
		return err
	case len(labs) == 0:
		return fmt.Errorf("there is no lab %s: make it with reconcile-lab up --name %s", name, name)
	}
	return fmt.Errorf("there is no lab %s: choose from %s, or make it with reconcile-lab up --name %s", name, strings.Join(labs, ", "), name)
}

// List names the labs that exist, sorted.
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

// Current is the lab of the last up that came to its end, or the only one there is; ""
// if there is none. Where that one is gone and several are left, none is guessed.
func Current() (string, error) {
	name, err := named(currentFile)
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
	return "", fmt.Errorf("the lab of the last up is gone: choose one with --lab: %s", strings.Join(labs, ", "))
}

// LastUp is the lab of the last up, also of one that did not come to its end; "" once it
// is gone.
func LastUp() (string, error) {
	name, err := named(begunFile)
	if err != nil || name != "" {
		return name, err
	}
	return named(currentFile)
}

// Files beside the labs' folders that hold the name of one: of the last up that came to
// its end, and of one that has not yet.
const (
	currentFile = "current"
	begunFile   = "begun"
)

// named reads such a file; "" where it names no lab that is there.
func named(file string) (string, error) {
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

func (l *Lab) makeCurrent() error {
	if err := l.name(currentFile); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(filepath.Dir(l.Dir), begunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// name writes the lab's name into a file beside the labs' folders.
func (l *Lab) name(file string) error {
	return WriteFile(filepath.Join(filepath.Dir(l.Dir), file), []byte(l.Name+"\n"))
}

// Load returns the lab's state; the zero value if there is no such lab, or one
// whose making was interrupted before anything was made.
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
		return s, fmt.Errorf("%s is damaged: remove the lab with reconcile-lab down --name %s: %w", l.path("lab.json"), l.Name, err)
	}
	return s, nil
}

func (l *Lab) save(s State) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(l.path("lab.json"), append(content, '\n'))
}

func (l *Lab) path(name string) string { return filepath.Join(l.Dir, name) }

// Kubeconfig is the file with admin access to every cluster, one context each.
func (l *Lab) Kubeconfig() string { return l.path("kubeconfig") }

func (l *Lab) lock(ctx context.Context, report Report) (func(), error) {
	return filelock.Take(ctx, l.path(".lock"), func() { report("waiting for another command on this lab") })
}

// WriteFile lets a reader see the old content or the new, never half of it.
func WriteFile(path string, content []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

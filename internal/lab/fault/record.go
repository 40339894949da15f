package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// state is the record of the faults of a lab.
type state struct {
	// LastNumber is the number in the latest ID.
	LastNumber int     `json:"lastNumber"`
	Faults     []Fault `json:"faults"`
	// Credentials contains the credentials that faults change, by member.
	Credentials map[string]credential `json:"credentials,omitempty"`
}

// faultDir returns the directory with the record and one directory for each background
// process.
func faultDir(l *lab.Lab) string { return filepath.Join(l.Dir, "faults") }

func recordFile(l *lab.Lab) string { return filepath.Join(faultDir(l), "faults.json") }

// load reads the record. A missing file is an empty record.
func load(l *lab.Lab) (*state, error) {
	s := &state{Credentials: map[string]credential{}}
	content, err := os.ReadFile(recordFile(l))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; recreate the lab with reconcile-lab down --name %s and reconcile-lab up --name %s", recordFile(l), err, l.Name, l.Name)
	}
	return s, nil
}

// save writes the record.
func (s *state) save(l *lab.Lab) error {
	if err := os.MkdirAll(faultDir(l), 0o700); err != nil {
		return err
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return lab.WriteFile(recordFile(l), append(content, '\n'))
}

// put adds a fault, or replaces the one with the same ID.
func (s *state) put(f Fault) {
	for n := range s.Faults {
		if s.Faults[n].ID == f.ID {
			s.Faults[n] = f
			return
		}
	}
	s.Faults = append(s.Faults, f)
}

// remove deletes the fault with that ID.
func (s *state) remove(id string) {
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool { return f.ID == id })
}

// find returns the active fault of that name in a member.
func (s *state) find(member, name string) (Fault, bool) {
	for _, f := range s.Faults {
		if f.Request.Fault == name && f.Request.Member == member {
			return f, true
		}
	}
	return Fault{}, false
}

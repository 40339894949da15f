package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// Request is what somebody asks for. Empty fields have a default that fits.
type Request struct {
	Fault string `json:"fault"`
	// Member, or for OnCache faults the member in which; the first that holds the
	// cache if empty.
	Member string `json:"member,omitempty"`
	// Namespace and Cache name a CacheCluster; the only one there is if empty.
	Namespace string `json:"namespace,omitempty"`
	Cache     string `json:"cache,omitempty"`
	// Kind of the child, or KIND/NAME.
	Kind string `json:"kind,omitempty"`
	// Field is a path, Value what it is set to.
	Field string `json:"field,omitempty"`
	Value string `json:"value,omitempty"`
	// Add is what a foreign fault adds.
	Add string `json:"add,omitempty"`
	// Manager is the field manager in whose name it is written.
	Manager string `json:"manager,omitempty"`
	// Every and For are the rhythm and the end of a fight.
	Every time.Duration `json:"every,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	// Restart starts the hub manager again at once.
	Restart bool `json:"restart,omitempty"`
	// Reset has a partition reset connections instead of dropping packets.
	Reset bool `json:"reset,omitempty"`
	// Latency, Jitter and Bandwidth (KB/s of each connection) of a slow network.
	Latency   time.Duration `json:"latency,omitempty"`
	Jitter    time.Duration `json:"jitter,omitempty"`
	Bandwidth int           `json:"bandwidth,omitempty"`
	// Verbs and Resources choose requests; Rate and Count say how many of them.
	Verbs     []string `json:"verbs,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Rate      float64  `json:"rate,omitempty"`
	Count     int      `json:"count,omitempty"`
	// Code and RetryAfter are what they are answered with.
	Code       int           `json:"code,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Fault is one that is there, with what its undo needs.
type Fault struct {
	ID      string    `json:"id"`
	Request Request   `json:"request"`
	Since   time.Time `json:"since"`
	// What was done, in a few words.
	What string `json:"what"`

	// Object in the member, as it was before.
	Object *object `json:"object,omitempty"`
	// Network is the member's place in the network before it was cut off.
	Network string `json:"network,omitempty"`
	// Over says that there is nothing to undo.
	Over bool `json:"over,omitempty"`
}

// Look is what to look at now.
func (f Fault) Look() string {
	k, err := kindOf(f.Request.Fault)
	if err != nil {
		return ""
	}
	return k.Look
}

// State is "there", or "ended" for a fight that has come to its end, or says that the
// background process is gone, as after a restart of the machine.
func (f Fault) State(l *lab.Lab) string {
	switch {
	case f.Request.Fault == Fight && !runs(l, f.ID):
		return "ended"
	case f.proxied() && !runs(l, proxyName(f.Request.Member)):
		return "broken: undo it"
	}
	return "there"
}

// state is the record of a lab's faults.
type state struct {
	// Last number that was given.
	Last   int     `json:"last"`
	Faults []Fault `json:"faults"`
	// Credentials of members whose Secret is changed now.
	Credentials map[string]credential `json:"credentials,omitempty"`
}

// dir holds the record and a folder for each background process.
func dir(l *lab.Lab) string { return filepath.Join(l.Dir, "faults") }

func recordFile(l *lab.Lab) string { return filepath.Join(dir(l), "faults.json") }

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
		return nil, fmt.Errorf("the record of faults is damaged; make the lab anew: %s: %w", recordFile(l), err)
	}
	return s, nil
}

func (s *state) save(l *lab.Lab) error {
	if err := os.MkdirAll(dir(l), 0o700); err != nil {
		return err
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return lab.WriteFile(recordFile(l), append(content, '\n'))
}

// put records a fault, or its latest state.
func (s *state) put(f Fault) {
	for n := range s.Faults {
		if s.Faults[n].ID == f.ID {
			s.Faults[n] = f
			return
		}
	}
	s.Faults = append(s.Faults, f)
}

func (s *state) drop(id string) {
	for n := range s.Faults {
		if s.Faults[n].ID == id {
			s.Faults = append(s.Faults[:n:n], s.Faults[n+1:]...)
			return
		}
	}
}

// on is the fault of that name that a member has now.
func (s *state) on(member, name string) (Fault, bool) {
	for _, f := range s.Faults {
		if f.Request.Fault == name && f.Request.Member == member {
			return f, true
		}
	}
	return Fault{}, false
}

// InputError is a request that cannot be meant.
type InputError struct{ error }

func (e InputError) Unwrap() error { return e.error }

func badInput(format string, args ...any) error { return InputError{fmt.Errorf(format, args...)} }

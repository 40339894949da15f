package fault

import (
	"fmt"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// Request selects a fault and its parameters. Empty fields have defaults.
type Request struct {
	// Fault is the name of the fault.
	Fault string `json:"fault"`
	// Member is the target of OnMember faults. For OnCache faults it is the member whose
	// child is changed, by default the first member with children.
	Member string `json:"member,omitempty"`
	// Namespace and Cache identify the CacheCluster, by default the only one.
	Namespace string `json:"namespace,omitempty"`
	Cache     string `json:"cache,omitempty"`
	// Kind selects the child: KIND or KIND/NAME.
	Kind string `json:"kind,omitempty"`
	// Field is the path of the field to set, and Value its new value.
	Field string `json:"field,omitempty"`
	Value string `json:"value,omitempty"`
	// Add is the field that a foreign fault adds: env, annotation or sidecar.
	Add string `json:"add,omitempty"`
	// Manager is the field manager of the change.
	Manager string `json:"manager,omitempty"`
	// Every and For are the interval and the duration of a conflict.
	Every time.Duration `json:"every,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	// Restart starts a killed hub manager again at once.
	Restart bool `json:"restart,omitempty"`
	// Reset makes a partition reset connections instead of dropping packets.
	Reset bool `json:"reset,omitempty"`
	// Latency, Jitter and Bandwidth (KB/s per connection) are the parameters of a slow
	// network.
	Latency   time.Duration `json:"latency,omitempty"`
	Jitter    time.Duration `json:"jitter,omitempty"`
	Bandwidth int           `json:"bandwidth,omitempty"`
	// Verbs and Resources select the requests that fail. Rate is the share of them and
	// Count the number after which the fault ends.
	Verbs     []string `json:"verbs,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Rate      float64  `json:"rate,omitempty"`
	Count     int      `json:"count,omitempty"`
	// Code is the HTTP status of error responses, and RetryAfter their Retry-After header.
	Code       int           `json:"code,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Fault is an injected fault, with everything that its undo needs.
type Fault struct {
	ID      string    `json:"id"`
	Request Request   `json:"request"`
	Since   time.Time `json:"since"`
	// Description is one sentence about the effect.
	Description string `json:"what"`

	// Object is the object in the member before the fault.
	Object *object `json:"object,omitempty"`
	// Disconnected is true if the provider removes the member from its network.
	Disconnected bool `json:"disconnected,omitempty"`
	// NoUndo is true if there is nothing to undo.
	NoUndo bool `json:"noUndo,omitempty"`
}

// Observe describes what the user sees of the fault.
func (f Fault) Observe() string {
	k, err := kindOf(f.Request.Fault)
	if err != nil {
		return ""
	}
	return k.Observe
}

// Values of Fault.State.
const (
	StateActive = "active"
	// StateEnded is the state of a fault whose duration is over.
	StateEnded = "ended"
	// StateBroken is the state of a fault whose background process is missing, for example
	// after a restart of the machine.
	StateBroken = "broken: undo it"
)

// State returns the state of the fault in the lab.
func (f Fault) State(l *lab.Lab) string {
	switch {
	case f.Request.Fault == Fight && !isRunning(l, f.ID):
		return StateEnded
	case f.usesProxy() && !isRunning(l, proxyName(f.Request.Member)):
		return StateBroken
	}
	return StateActive
}

// InputError is the error of an invalid request.
type InputError struct{ error }

// Unwrap returns the cause.
func (e InputError) Unwrap() error { return e.error }

func badInput(format string, args ...any) error { return InputError{fmt.Errorf(format, args...)} }

package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is one way in which a request or an event goes wrong.
type Fault string

// The faults of a request.
const (
	// Refused, Reset and Timeout: the request never reaches the API server.
	Refused Fault = "refused"
	Reset   Fault = "reset"
	Timeout Fault = "timeout"
	// Lost: the API server carries the request out and its answer is lost.
	Lost Fault = "lost"
	// The API server answers with a status; TooMany with Retry-After: 1.
	Conflict    Fault = "409"
	TooMany     Fault = "429"
	Internal    Fault = "500"
	Unavailable Fault = "503"
	Forbidden   Fault = "403"
	// The process is killed before it sends the request, or after the API server has
	// carried it out; another one starts then.
	KillBefore Fault = "kill-before"
	KillAfter  Fault = "kill-after"
)

// The faults of an event of a watch.
const (
	// Closed: the watch ends before the event, and is opened again.
	Closed Fault = "closed"
	// Delayed: it comes half a second late.
	Delayed Fault = "delayed"
	// Duplicated: it comes twice.
	Duplicated Fault = "duplicated"
	// Missed: it does not come; a second later the watch expires with 410 and all
	// objects are listed anew.
	Missed Fault = "missed"
	// Stale: from it on the cache is one version of this object behind: an event
	// comes when the next one is due, or after a while.
	Stale Fault = "stale"
)

// RequestFaults and KillFaults are those of requests, EventFaults those of events.
var (
	RequestFaults = []Fault{Refused, Reset, Timeout, Lost, Conflict, TooMany, Internal, Unavailable, Forbidden}
	KillFaults    = []Fault{KillBefore, KillAfter}
	EventFaults   = []Fault{Closed, Delayed, Duplicated, Missed, Stale}
)

// Kills says that the fault ends the process.
func (f Fault) Kills() bool { return slices.Contains(KillFaults, f) }

// Case is one fault at one point of a scenario.
type Case struct {
	Scenario string
	Point    Point
	Fault    Fault
}

// String names the case; `make faults CASE=...` takes it, or the beginning of it.
func (c Case) String() string { return c.Scenario + "/" + c.Point.String() + "/" + string(c.Fault) }

// Replay is the command that repeats the case.
func (c Case) Replay() string { return fmt.Sprintf("make faults CASE='%s'", c) }

// Cases are every fault at every point.
func Cases(scenario string, points []Point) []Case {
	var cases []Case
	for _, p := range points {
		faults := EventFaults
		if !p.Event() {
			faults = slices.Concat(RequestFaults, KillFaults)
		}
		for _, f := range faults {
			cases = append(cases, Case{scenario, p, f})
		}
	}
	return cases
}

// Parse reads a case's name.
func Parse(name string) (Case, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return Case{}, fmt.Errorf("case %q: want SCENARIO/POINT/FAULT", name)
	}
	fields := strings.Split(parts[1], ":")
	if len(fields) != 5 {
		return Case{}, fmt.Errorf("case %q: want a point SERVER:VERB:KIND:NAME:N", name)
	}
	n, err := strconv.Atoi(fields[4])
	if err != nil {
		return Case{}, fmt.Errorf("case %q: %w", name, err)
	}
	place := Place{Server: fields[0], Verb: fields[1], Kind: fields[2], Name: fields[3]}
	return Case{parts[0], Point{place, n}, Fault(parts[2])}, nil
}

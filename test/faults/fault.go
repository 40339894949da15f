package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Fault is one way in which a request or an event goes wrong.
type Fault string

// The faults of a request.
const (
	// Refused, Reset and Timeout end the request before it reaches the API server.
	Refused Fault = "refused"
	Reset   Fault = "reset"
	Timeout Fault = "timeout"
	// Lost drops the answer after the API server executed the request.
	Lost Fault = "lost"
	// Conflict, TooMany, Internal, Unavailable and Forbidden are answers of the API server.
	// TooMany has Retry-After: 1.
	Conflict    Fault = "409"
	TooMany     Fault = "429"
	Internal    Fault = "500"
	Unavailable Fault = "503"
	Forbidden   Fault = "403"
	// KillBefore and KillAfter kill the process before it sends the request, or after the
	// API server executed it. Another process starts then.
	KillBefore Fault = "kill-before"
	KillAfter  Fault = "kill-after"
)

// The faults of an event of a watch.
const (
	// Closed ends the watch before the event; the client opens it again.
	Closed Fault = "closed"
	// Delayed delivers the event half a second late.
	Delayed Fault = "delayed"
	// Duplicated delivers the event twice.
	Duplicated Fault = "duplicated"
	// Missed drops the event. A second later the watch expires with 410, and the client
	// lists all objects again.
	Missed Fault = "missed"
	// Stale delivers each event of the object when the next one is due, or after a
	// delay. So the cache has an outdated version.
	Stale Fault = "stale"
)

// RequestFaults and KillFaults are those of requests, EventFaults those of events.
var (
	RequestFaults = []Fault{Refused, Reset, Timeout, Lost, Conflict, TooMany, Internal, Unavailable, Forbidden}
	KillFaults    = []Fault{KillBefore, KillAfter}
	EventFaults   = []Fault{Closed, Delayed, Duplicated, Missed, Stale}
)

// AllFaults returns every fault, in the order of reports.
func AllFaults() []Fault { return slices.Concat(RequestFaults, KillFaults, EventFaults) }

// FaultsAt returns the faults that can be injected at a point.
func FaultsAt(p Point) []Fault {
	if p.Event() {
		return EventFaults
	}
	return slices.Concat(RequestFaults, KillFaults)
}

// Kills reports whether the fault ends the process.
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

// Cases returns every fault at every point.
func Cases(scenario string, points []Point) []Case {
	var cases []Case
	for _, p := range points {
		for _, f := range FaultsAt(p) {
			cases = append(cases, Case{scenario, p, f})
		}
	}
	return cases
}

// shuffle orders cases by the seed.
func shuffle(cases []Case, seed int64) {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	random.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
}

// spread orders cases so that every fault of every scenario comes once before one comes
// twice.
func spread(cases []Case) []Case {
	type group struct {
		scenario string
		fault    Fault
	}
	turn := map[group]int{}
	rank := map[Case]int{}
	for _, c := range cases {
		g := group{c.Scenario, c.Fault}
		rank[c] = turn[g]
		turn[g]++
	}
	slices.SortStableFunc(cases, func(a, b Case) int { return rank[a] - rank[b] })
	return cases
}

// ParsePoint parses the name of a point, SERVER:VERB:KIND:NAME:N.
func ParsePoint(name string) (Point, error) {
	fields := strings.Split(name, ":")
	if len(fields) != 5 {
		return Point{}, fmt.Errorf("the point %q must be SERVER:VERB:KIND:NAME:N", name)
	}
	n, err := strconv.Atoi(fields[4])
	if err != nil || n < 1 {
		return Point{}, fmt.Errorf("the point %q must end in a number of 1 or more", name)
	}
	return Point{Place{Server: fields[0], Verb: fields[1], Kind: fields[2], Name: fields[3]}, n}, nil
}

// Parse parses the name of a case.
func Parse(name string) (Case, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return Case{}, fmt.Errorf("case %q must be SCENARIO/POINT/FAULT", name)
	}
	point, err := ParsePoint(parts[1])
	if err != nil {
		return Case{}, fmt.Errorf("case %q: %w", name, err)
	}
	if err := checkFault("fault", parts[2], FaultsAt(point)); err != nil {
		return Case{}, fmt.Errorf("case %q: %w", name, err)
	}
	return Case{parts[0], point, Fault(parts[2])}, nil
}

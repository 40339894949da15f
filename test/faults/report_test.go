//go:build faults

package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// report is the content of faults.json.
type report struct {
	mu sync.Mutex

	Seed      int64   `json:"seed"`
	Full      bool    `json:"full"`
	Seconds   float64 `json:"seconds"`
	Injected  int     `json:"injected"`
	Converged int     `json:"converged"`
	Wrong     int     `json:"wrong"`
	Chosen    int     `json:"chosen"`
	// NotRun cases were chosen, but FAULTS_MINUTES were over.
	NotRun     int                       `json:"notRun,omitempty"`
	NotReached []string                  `json:"notReached,omitempty"`
	Scenarios  map[string]scenarioReport `json:"scenarios"`
	Faults     map[Fault]*faultReport    `json:"faults"`
	Histories  []historyReport           `json:"histories,omitempty"`
	Failures   []failure                 `json:"failures,omitempty"`
	// Extra are the writes beyond a clean run's, of the cases that needed any.
	Extra    map[string]int `json:"extra,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	// Remaining are the namespaces that did not become empty.
	Remaining []string `json:"remaining,omitempty"`

	begun time.Time
	unmet []Case
}

type scenarioReport struct {
	// Points of all clean runs, and the most writes that one of them needed.
	Points int                  `json:"points"`
	Writes int                  `json:"writes"`
	Counts map[Fault]*caseCount `json:"faults"`
}

type caseCount struct {
	Injected  int `json:"injected"`
	Converged int `json:"converged"`
}

type faultReport struct {
	Injected  int `json:"injected"`
	Converged int `json:"converged"`
	Bound     int `json:"bound"`
	// ExtraWrites is the number of runs by their writes beyond those of a clean run.
	ExtraWrites map[int]int `json:"extraWrites"`
	// P50 and Max are the seconds until a run was quiet, the quiet time included.
	P50, Max float64

	took []time.Duration
}

type failure struct {
	Case     string         `json:"case"`
	Replay   string         `json:"replay"`
	Why      string         `json:"why"`
	Statuses []statusReport `json:"statuses,omitempty"`
	Entries  []string       `json:"entries,omitempty"`
}

type historyReport struct {
	Seed    uint64  `json:"seed"`
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"`
	Failed  bool    `json:"failed,omitempty"`
}

func newReport(seed int64, full bool) *report {
	return &report{Seed: seed, Full: full, Scenarios: map[string]scenarioReport{}, Faults: map[Fault]*faultReport{}, Extra: map[string]int{}, begun: time.Now()}
}

func (r *report) scenario(name string, k *knowledge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Scenarios[name] = scenarioReport{Points: len(k.points), Writes: k.writes, Counts: map[Fault]*caseCount{}}
}

// done records a run whose fault was injected. failed is nil for a run that converged.
func (r *report) done(c Case, extra int, took time.Duration, failed *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.Faults[c.Fault]
	if f == nil {
		f = &faultReport{Bound: bounds[c.Fault], ExtraWrites: map[int]int{}}
		r.Faults[c.Fault] = f
	}
	count := r.Scenarios[c.Scenario].Counts[c.Fault]
	if count == nil {
		count = &caseCount{}
		r.Scenarios[c.Scenario].Counts[c.Fault] = count
	}
	r.Injected++
	if r.Injected%250 == 0 {
		fmt.Printf("faults: %d injected so far, %d wrong, %.0f s\n", r.Injected, r.Wrong, time.Since(r.begun).Seconds())
	}
	f.Injected++
	count.Injected++
	if failed != nil {
		r.Wrong++
		r.Failures = append(r.Failures, *failed)
		return
	}
	if extra > 0 {
		r.Extra[c.String()] = extra
	}
	r.Converged++
	f.Converged++
	count.Converged++
	f.ExtraWrites[max(0, extra)]++
	f.took = append(f.took, took)
}

func (r *report) missed(c Case) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.NotReached = append(r.NotReached, c.String())
	r.unmet = append(r.unmet, c)
}

func (r *report) choose(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Chosen = n
}

func (r *report) remains(left error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Remaining = append(r.Remaining, left.Error())
}

// complaints returns what makes the suite fail although no single case did.
func (r *report) complaints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A wrong run had its fault injected too.
	return Tally{Chosen: r.Chosen, Injected: r.Injected, NotReached: r.unmet, NotRun: r.NotRun, Remaining: r.Remaining}.Complaints()
}

func (r *report) skip(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.NotRun += n
}

func (r *report) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *report) history(h historyReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Histories = append(r.Histories, h)
}

// write saves the report and prints a summary. The last line is the result.
func (r *report) write(file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Seconds = time.Since(r.begun).Seconds()
	fmt.Printf("%-12s %9s %9s  %s\n", "fault", "injected", "converged", "extra writes (bound): runs; seconds p50/max")
	for _, f := range AllFaults() {
		x := r.Faults[f]
		if x == nil {
			continue
		}
		slices.Sort(x.took)
		if n := len(x.took); n > 0 {
			x.P50, x.Max = x.took[n/2].Seconds(), x.took[n-1].Seconds()
		}
		fmt.Printf("%-12s %9d %9d  (%d) %v; %.1f/%.1f\n", f, x.Injected, x.Converged, x.Bound, x.ExtraWrites, x.P50, x.Max)
	}
	slices.SortFunc(r.Failures, func(a, b failure) int { return cmp.Compare(a.Case, b.Case) })
	slices.Sort(r.NotReached)
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(raw, '\n'), 0o644)
	}
	for _, f := range r.Failures {
		fmt.Printf("wrong: %s\n  %s\n", f.Case, f.Replay)
	}
	for _, p := range r.Problems {
		fmt.Printf("problem: %s\n", p)
	}
	for _, left := range r.Remaining {
		fmt.Printf("problem: %s\n", left)
	}
	if n := len(r.NotReached); n > 0 {
		fmt.Printf("not reached: %d of %d cases, for example %s\n", n, r.Chosen, r.NotReached[0])
	}
	if r.NotRun > 0 {
		fmt.Printf("not run because FAULTS_MINUTES were over: %d cases\n", r.NotRun)
	}
	if n := len(r.Histories); n > 0 {
		failed := 0
		for _, h := range r.Histories {
			if h.Failed {
				failed++
			}
		}
		fmt.Printf("histories: %d run, %d failed\n", n, failed)
	}
	fmt.Printf("faults: seed %d, %.0f s, report %s\n", r.Seed, r.Seconds, file)
	fmt.Printf("faults: %d injected, %d converged, %d wrong\n", r.Injected, r.Converged, r.Wrong)
	return err
}

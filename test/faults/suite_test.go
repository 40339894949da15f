//go:build faults

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// bounds are the writes that a run may need beyond the clean run that needed most. A
// write is a request that an API server carried out and that changes an object. A 403 is
// reported at once, and so is its end: each is a status and an Event, of the MemberCache
// and of the CacheCluster. Every other fault ends before it is reported.
var bounds = map[Fault]int{
	Refused: 4, Reset: 4, Timeout: 4, Lost: 4, Conflict: 4, TooMany: 4, Internal: 4, Unavailable: 4, Forbidden: 8,
	KillBefore: 4, KillAfter: 4, Closed: 4, Delayed: 4, Duplicated: 4, Missed: 4, Stale: 4,
}

// progressEach is the least time between two statuses of the CacheCluster, or of a
// MemberCache, that report progress only.
const progressEach = 2 * time.Second

// boundOf returns the bound of a run that worked for longer than the clean ones. It may
// report progress more often, each of the CacheCluster and its two members.
func boundOf(f Fault, longer time.Duration) int {
	return bounds[f] + 3*int(max(0, longer)/progressEach)
}

// cleanRuns is the number of runs of each scenario without a fault. Points are what all
// of them met.
const cleanRuns = 3

func TestFaults_ConvergeToStateOfCleanRun(t *testing.T) {
	if settings.Case != nil && settings.Case.Scenario == Histories {
		t.Skip("CASE selects histories")
	}
	if err := lab.start(); err != nil {
		t.Fatal(err)
	}
	// Registered first, so it runs last, also after a fatal error.
	t.Cleanup(func() {
		endings.Wait()
		for _, complaint := range out.complaints() {
			t.Error(complaint)
		}
	})
	var wanted []scenario
	for _, s := range scenarios() {
		if settings.Case == nil || s.name == settings.Case.Scenario {
			wanted = append(wanted, s)
		}
	}
	known := observe(t, wanted)
	// The suite goes on without a scenario whose clean runs failed.
	wanted = slices.DeleteFunc(wanted, func(s scenario) bool { return !known[s.name].clean })
	var all []Case
	for _, s := range wanted {
		all = append(all, Cases(s.name, known[s.name].points)...)
	}
	if len(all) == 0 {
		t.Fatal("no clean run succeeded, so there is no case")
	}
	cases, err := settings.Choose(all)
	if err != nil {
		t.Fatal(err)
	}
	out.choose(len(cases))
	t.Logf("%d of %d cases", len(cases), len(all))

	bystander, err := lab.bystander(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killing, others := split(cases)
	for batch := range slices.Chunk(killing, 3*settings.Parallel) {
		if spent() {
			out.skip(len(batch))
			continue
		}
		kill(t, wanted, known, batch)
	}
	pool := newPool(settings.Parallel)
	for i, c := range others {
		if spent() {
			out.skip(len(others) - i)
			break
		}
		s := find(wanted, c.Scenario)
		pool.do(func() { try(t, s, known[s.name], c) })
	}
	pool.wait()
	if err := bystander.untouched(); err != nil {
		out.problem("%v", err)
		t.Error(err)
	}
	finally(bystander.run)
}

// spent reports whether FAULTS_MINUTES are over.
func spent() bool {
	return settings.Minutes > 0 && time.Since(out.begun) > time.Duration(settings.Minutes)*time.Minute
}

// split returns the cases that end the process, and the others.
func split(cases []Case) (killing, others []Case) {
	for _, c := range cases {
		if c.Fault.Kills() {
			killing = append(killing, c)
		} else {
			others = append(others, c)
		}
	}
	return killing, others
}

func find(all []scenario, name string) *scenario {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// observe runs each scenario a few times without faults.
func observe(t *testing.T, all []scenario) map[string]*knowledge {
	t.Helper()
	known := map[string]*knowledge{}
	pool := newPool(settings.Parallel)
	var mu sync.Mutex
	results := map[string][]result{}
	for i := range all {
		s := &all[i]
		k := &knowledge{}
		known[s.name] = k
		for range cleanRuns {
			pool.do(func() {
				r, err := lab.prepare(t.Context(), s, k)
				defer finally(r)
				if err == nil {
					err = r.begin(nil)
				}
				var got result
				if err == nil {
					got, err = r.finish(nil)
				}
				if err != nil {
					t.Errorf("clean run of %s: %v\n%s", s.name, err, history(r))
					out.problem("a clean run of %s fails", s.name)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				results[s.name] = append(results[s.name], got)
			})
		}
	}
	pool.wait()
	for name, runs := range results {
		k := known[name]
		k.state, k.points, k.clean = runs[0].state, runs[0].points, true
		for _, r := range runs {
			k.writes = max(k.writes, r.writes)
			k.busy = max(k.busy, r.busy)
			k.points = slices.DeleteFunc(k.points, func(p Point) bool { return !slices.Contains(r.points, p) })
			if diff := Differ(k.state, r.state); diff != "" {
				t.Errorf("two clean runs of %s differ:%s", name, diff)
				out.problem("two clean runs of %s differ", name)
				k.clean = false
			}
		}
		k.clean = k.clean && len(runs) == cleanRuns
		if len(k.points) == 0 {
			t.Errorf("the clean runs of %s have no point in common, so no fault can be injected", name)
		}
		out.scenario(name, k)
	}
	return known
}

// try runs one case on the manager that runs now.
func try(t *testing.T, s *scenario, k *knowledge, c Case) {
	r, err := lab.prepare(t.Context(), s, k)
	defer finally(r)
	if err == nil {
		err = r.begin(&c)
	}
	if err != nil {
		problem(t, r, c, err)
		return
	}
	got, err := r.finish(k.state)
	conclude(t, r, c, got, err)
}

// kill runs cases whose fault ends the process. When each run has met its point, all of
// them get a new process. For the API servers this equals a process that is killed there.
func kill(t *testing.T, all []scenario, known map[string]*knowledge, batch []Case) {
	runs := make([]*run, len(batch))
	acted := make([]chan error, len(batch))
	var working sync.WaitGroup
	for i, c := range batch {
		working.Go(func() {
			r, err := lab.prepare(t.Context(), find(all, c.Scenario), known[c.Scenario])
			if err != nil {
				problem(t, r, c, err)
				finally(r)
				return
			}
			runs[i], acted[i] = r, make(chan error, 1)
			// An action may wait for what only the next process does.
			go func() { acted[i] <- r.begin(&c) }()
			r.meets()
		})
	}
	working.Wait()
	lab.manager.kill()
	for _, r := range runs {
		if r != nil {
			r.trace.Revive()
		}
	}
	if err := lab.start(); err != nil {
		t.Fatal(err)
	}
	for i, r := range runs {
		if r == nil {
			continue
		}
		working.Go(func() {
			defer finally(r)
			if err := <-acted[i]; err != nil {
				problem(t, r, batch[i], err)
				return
			}
			got, err := r.finish(r.known.state)
			conclude(t, r, batch[i], got, err)
		})
	}
	working.Wait()
}

// conclude judges a run.
func conclude(t *testing.T, r *run, c Case, got result, err error) {
	if r.trace.Hit().IsZero() && err == nil {
		out.missed(c)
		return
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	for _, wrong := range r.wrongs() {
		why += "\nwrong status: " + wrong
	}
	extra := got.writes - r.known.writes
	if bound := boundOf(c.Fault, got.busy-r.known.busy); extra > bound {
		why += fmt.Sprintf("\n%d writes, %d more than a clean run; the bound is %d", got.writes, extra, bound)
	}
	if why == "" {
		out.done(c, extra, got.took, nil)
		return
	}
	f := failure{Case: c.String(), Replay: c.Replay(), Why: why, Statuses: r.sighting.reports(), Entries: entries(r)}
	out.done(c, extra, got.took, &f)
	t.Errorf("%s: %s\nreplay: %s\n%s", c, why, c.Replay(), history(r))
}

// problem fails a run that did not come as far as its fault.
func problem(t *testing.T, r *run, c Case, err error) {
	out.problem("%s: %v", c, err)
	t.Errorf("%s: %v\nreplay: %s\n%s", c, err, c.Replay(), history(r))
}

// endings are the runs whose objects are being removed.
var endings sync.WaitGroup

// finally removes a run's objects. A namespace that does not become empty fails the suite
// at its end.
func finally(r *run) {
	if r == nil {
		return
	}
	endings.Go(func() {
		if err := r.end(context.Background()); err != nil {
			out.remains(err)
		}
	})
}

func entries(r *run) []string {
	var lines []string
	for _, e := range r.trace.Entries() {
		line := fmt.Sprintf("%7.3f %s", e.At.Sub(r.acted).Seconds(), e.Point)
		if e.Code != 0 {
			line += fmt.Sprintf(" %d in %s", e.Code, e.Took.Round(time.Millisecond))
		}
		if e.Fault != "" {
			line += " <- " + string(e.Fault)
		}
		lines = append(lines, line)
	}
	return lines
}

// history returns the requests, events, statuses and watches of a run.
func history(r *run) string {
	if r == nil {
		return ""
	}
	text := "requests and events:\n  " + strings.Join(entries(r), "\n  ") + "\nstatus:\n"
	for _, s := range r.sighting.reports() {
		text += fmt.Sprintf("  %7.3f %s %s\n", s.At.Sub(r.acted).Seconds(), s.Ready, s.Text)
	}
	return text + "watches:\n" + r.board.WatchLog.About(r.namespace, r.acted.Add(-time.Second))
}

// pool bounds the number of runs at the same time.
type pool struct {
	slots   chan struct{}
	working sync.WaitGroup
}

func newPool(n int) *pool { return &pool{slots: make(chan struct{}, n)} }

func (p *pool) do(f func()) {
	p.slots <- struct{}{}
	p.working.Go(func() {
		defer func() { <-p.slots }()
		f()
	})
}

func (p *pool) wait() { p.working.Wait() }

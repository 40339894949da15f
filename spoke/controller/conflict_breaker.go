package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// The fight breaker. A fight is that one manager changes a field once more that was put
// right fightFlips times within fightWindow after it had done so. From then on the object is put right after
// fightPause, then after twice as long each time, up to fightPauseMax. It is over when the
// object has stayed right for fightWindow.
const (
	fightFlips    = 5
	fightWindow   = 2 * time.Minute
	fightPause    = 30 * time.Second
	fightPauseMax = 5 * time.Minute
)

// fights of one member. They are in memory only: after a restart, a fight that goes on
// is found again after fightFlips repairs.
type fights struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[apply.Key]*fight
}

// fight is what happened to one object lately.
type fight struct {
	// flips are when repairs undid the same, at most the last fightFlips of each, the
	// latest last.
	flips map[flip][]time.Time
	// last is when the object was put right last, and finding what is told: what was put
	// right then, or, once it was changed back and is held, how it is now.
	last    time.Time
	finding v1alpha1.DriftFinding
	held    bool
	// The rest is of an object that is put right slowly: how often each of the flips that
	// are the fight was put right, how often the object was, the pause and when it ends.
	sides map[flip]int
	count int
	pause time.Duration
	due   time.Time
	// right is whether it was as it shall be when it was looked at last, and since when.
	right bool
	since time.Time
}

// flip is what one manager did to one field, or to the whole object, which has no name.
type flip struct {
	manager, field string
	// foreign: the field was added.
	foreign bool
}

// slow says that the object is put right slowly.
func (f *fight) slow() bool { return f.count > 0 }

// repaired notes a repair.
func (f *fight) repaired(finding v1alpha1.DriftFinding, now time.Time) {
	if f.flips == nil {
		f.flips = map[flip][]time.Time{}
	}
	maps.DeleteFunc(f.flips, func(_ flip, at []time.Time) bool { return now.Sub(at[len(at)-1]) > fightWindow })
	for _, flip := range flipsIn(&finding) {
		at := f.flips[flip]
		f.flips[flip] = append(at[max(0, len(at)-fightFlips+1):], now)
	}
	f.last, f.finding, f.held = now, finding, false
	if f.slow() {
		for _, once := range flipsIn(&finding) {
			if f.sides[once] > 0 {
				f.sides[once]++
			}
		}
		f.join(&finding, now)
		if f.isOver(&finding) {
			f.count++
			f.pause = min(2*f.pause, fightPauseMax)
			f.due = now.Add(f.pause)
		}
	}
}

// isOver says that the fight is over what drifted. An object that was deleted is made anew
// at once where only fields of it are fought over.
func (f *fight) isOver(finding *v1alpha1.DriftFinding) bool {
	return !finding.Deleted || f.sides[flip{manager: finding.Manager}] > 0
}

// holds says whether a new drift is to wait. It may be the one that makes a fight. What
// has its values, and is only held by somebody else, does not wait.
func (f *fight) holds(drifted func() v1alpha1.DriftFinding, now time.Time) bool {
	if f.slow() && !now.Before(f.due) || !f.slow() && !f.armed(now) {
		return false
	}
	finding := drifted()
	switch {
	case len(flipsIn(&finding)) == 0:
		return false
	case f.slow() && !f.isOver(&finding) && !f.often(flip{manager: finding.Manager}, now):
		return false
	case f.slow():
	case f.join(&finding, now):
		f.count, f.pause = fightFlips, fightPause
		f.due = f.last.Add(f.pause)
	default:
		return false
	}
	// Until the next repair the same is told, whatever others make of it meanwhile.
	if !f.held {
		f.finding, f.held = finding, true
	}
	return now.Before(f.due)
}

// join makes those of what drifted a part of the fight that were put right often enough,
// and says whether there are any.
func (f *fight) join(finding *v1alpha1.DriftFinding, now time.Time) bool {
	joined := false
	for _, once := range flipsIn(finding) {
		if !f.often(once, now) {
			continue
		}
		joined = true
		if f.sides == nil {
			f.sides = map[flip]int{}
		}
		if f.sides[once] == 0 {
			f.sides[once] = fightFlips
		}
	}
	return joined
}

// armed says that something was put right often enough for a fight lately.
func (f *fight) armed(now time.Time) bool {
	for once := range f.flips {
		if f.often(once, now) {
			return true
		}
	}
	return false
}

func (f *fight) often(once flip, now time.Time) bool {
	at := f.flips[once]
	return len(at) == fightFlips && now.Sub(at[0]) <= fightWindow
}

// over says that the other side has been quiet for long enough; right is whether the
// object is as it shall be.
func (f *fight) over(right bool, now time.Time) bool {
	return right && !now.Before(f.end())
}

// end is when it is over if the object stays right.
func (f *fight) end() time.Time {
	if f.since.After(f.last) {
		return f.since.Add(fightWindow)
	}
	return f.last.Add(fightWindow)
}

// wait is how long until something is to be done about it.
func (f *fight) wait(right bool, now time.Time) time.Duration {
	if right {
		return max(time.Millisecond, f.end().Sub(now))
	}
	return max(time.Millisecond, f.due.Sub(now))
}

func flipsIn(f *v1alpha1.DriftFinding) []flip {
	if f.Deleted {
		return []flip{{manager: f.Manager}}
	}
	flips := make([]flip, 0, len(f.Fields))
	for _, field := range f.Fields {
		// The last one may count those that are not named.
		if !strings.HasPrefix(field, "and ") {
			flips = append(flips, flip{manager: f.ManagerOf(field), field: field, foreign: f.Foreign})
		}
	}
	return flips
}

// hold says whether an object is not to be put right now; drifted is asked what there
// is to be put right where that matters.
func (f *fights) hold(cache types.NamespacedName, object apply.Key, drifted func() v1alpha1.DriftFinding, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.of[cache][object]
	return of != nil && of.holds(drifted, now)
}

// bout is what is to be said of the fights of one MemberCache.
type bout struct {
	// told is what is said of each object that is fought over; open is what of them is not
	// right now, as far as is known.
	told []string
	open []v1alpha1.DriftFinding
	// tries of the slowed kind, and when the next one of what is open is due.
	tries int32
	due   time.Time
	// wait until something is to be done.
	wait time.Duration
}

// settle notes what came of a reconcile, and gives the fights that go on.
func (f *fights) settle(cache types.NamespacedName, report *apply.Report, now time.Time) bout {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range report.Changes {
		if c := &report.Changes[i]; c.Drifted() {
			f.at(cache, c.Key).repaired(describeChange(c), now)
		}
	}
	open := map[apply.Key]bool{}
	var refused []apply.Key
	for i := range report.Remaining {
		o := &report.Remaining[i]
		open[o.Key] = open[o.Key] || !o.Foreign && !o.Refused
		if o.Refused {
			refused = append(refused, o.Key)
		}
	}
	var going bout
	for _, object := range slices.SortedFunc(maps.Keys(f.of[cache]), func(a, b apply.Key) int { return strings.Compare(a.String(), b.String()) }) {
		of := f.of[cache][object]
		if slices.Contains(report.Unobserved, object) || slices.Contains(refused, object) {
			// Nothing is known of it, or nothing came of it. Whatever failed says when to look again.
			if of.slow() {
				going.add(object, of, !of.right)
			}
			continue
		}
		right := !slices.Contains(report.Deferred, object)
		if right && !of.right {
			of.since, of.held = now, false
		}
		of.right = right
		if open[object] || of.over(right, now) {
			// It is left as it is by policy, or quiet.
			delete(f.of[cache], object)
			continue
		}
		if of.slow() {
			going.add(object, of, !right)
			going.look(of.wait(right, now))
		}
	}
	if len(f.of[cache]) == 0 {
		delete(f.of, cache)
	}
	return going
}

func (f *fights) at(cache types.NamespacedName, object apply.Key) *fight {
	if f.of == nil {
		f.of = map[types.NamespacedName]map[apply.Key]*fight{}
	}
	if f.of[cache] == nil {
		f.of[cache] = map[apply.Key]*fight{}
	}
	if f.of[cache][object] == nil {
		f.of[cache][object] = &fight{}
	}
	return f.of[cache][object]
}

func (f *fights) forget(cache types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, cache)
}

func (b *bout) add(object apply.Key, of *fight, open bool) {
	b.told = append(b.told, object.String()+": "+of.tell())
	if !open {
		return
	}
	b.open = append(b.open, of.finding)
	b.tries = max(b.tries, int32(of.count-fightFlips+1))
	if b.due.IsZero() || of.due.Before(b.due) {
		b.due = of.due
	}
}

// tell says who did what how often.
func (f *fight) tell() string {
	type side struct {
		manager          string
		count            int
		deleted, foreign bool
	}
	fields := map[side][]string{}
	for once, count := range f.sides {
		at := side{once.manager, count, once.field == "", once.foreign}
		fields[at] = append(fields[at], once.field)
	}
	var parts []string
	for at, of := range fields {
		slices.Sort(of)
		what := strings.Join(of, ", ") + " was changed back"
		switch {
		case at.deleted:
			what = "it was deleted"
		case at.foreign:
			what = strings.Join(of, ", ") + " was added"
		}
		by := " by " + at.manager
		if at.manager == drift.Unknown {
			by = ", by whom is unknown"
		}
		parts = append(parts, fmt.Sprintf("%s %d times%s", what, at.count, by))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// look asks for the next reconcile after a time.
func (b *bout) look(wait time.Duration) {
	if b.wait == 0 || wait < b.wait {
		b.wait = wait
	}
}

// failure that the fights are, or nil where there are none. It changes with a repair
// only.
func (b *bout) failure() *failure.Failure {
	if len(b.told) == 0 {
		return nil
	}
	return &failure.Failure{Class: v1alpha1.ClassConflict, Reason: v1alpha1.ReasonDriftFight,
		Message: strings.Join(b.told, "; ") + "; it is put right more and more slowly",
		Hint:    "stop the other manager, or let it have the field with a rule in spec.drift.ignore"}
}

// fought says that the failure is the fights.
func (r *result) fought() bool {
	return r.failure != nil && r.failure.Reason == v1alpha1.ReasonDriftFight
}

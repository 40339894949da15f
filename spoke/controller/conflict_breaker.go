package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// A conflict with another controller begins when a manager changes a field again that was
// corrected conflictThreshold times within conflictWindow. The breaker then corrects the
// child after firstCorrectionInterval, and after twice as long each time, up to
// longestCorrectionInterval. The conflict ends when the child has been in sync for
// conflictWindow.
const (
	conflictThreshold         = 5
	conflictWindow            = 2 * time.Minute
	firstCorrectionInterval   = 30 * time.Second
	longestCorrectionInterval = 5 * time.Minute
)

// conflictBreaker holds the recent corrections of the children of one MemberCache. The
// zero value holds none.
type conflictBreaker map[apply.Key]*childConflict

// childConflict is the recent history of one child.
type childConflict struct {
	// corrections are the times at which each change was corrected, at most the last
	// conflictThreshold, the latest last.
	corrections map[change][]time.Time
	// corrected is the time of the last correction. finding is the drift that the status
	// shows: of the last correction or, once it is deferred, of the change after it.
	corrected time.Time
	finding   v1alpha1.DriftFinding
	deferred  bool
	// contested counts the corrections of each change that is part of the conflict.
	contested map[change]int
	// count is the number of corrections of the child in the conflict, 0 without one.
	// interval is the present correction interval, and due is when it ends.
	count    int
	interval time.Duration
	due      time.Time
	// inSync reports whether the child was in sync in the last reconcile, and inSyncSince
	// is since when.
	inSync      bool
	inSyncSince time.Time
}

// change is what one manager did to one field, or to the whole child if the field is
// empty: the child was deleted.
type change struct {
	manager, field string
	// foreign: the field was added.
	foreign bool
}

// tripped reports whether the child is in a conflict, so its corrections are throttled.
func (c *childConflict) tripped() bool { return c.count > 0 }

// recordCorrection records a correction.
func (c *childConflict) recordCorrection(finding v1alpha1.DriftFinding, now time.Time) {
	if c.corrections == nil {
		c.corrections = map[change][]time.Time{}
	}
	maps.DeleteFunc(c.corrections, func(_ change, times []time.Time) bool { return now.Sub(times[len(times)-1]) > conflictWindow })
	for _, one := range changesIn(&finding) {
		times := c.corrections[one]
		c.corrections[one] = append(times[max(0, len(times)-conflictThreshold+1):], now)
	}
	c.corrected, c.finding, c.deferred = now, finding, false
	if !c.tripped() {
		return
	}
	for _, one := range changesIn(&finding) {
		if c.contested[one] > 0 {
			c.contested[one]++
		}
	}
	c.contest(&finding, now)
	if c.contests(&finding) {
		c.count++
		c.interval = min(2*c.interval, longestCorrectionInterval)
		c.due = now.Add(c.interval)
	}
}

// contests reports whether a finding is part of the conflict. A child that was deleted is
// recreated at once where only its fields are contested.
func (c *childConflict) contests(finding *v1alpha1.DriftFinding) bool {
	return !finding.Deleted || c.contested[change{manager: finding.Manager}] > 0
}

// defers reports whether the correction of a new drift is deferred. That drift may be the
// one that begins the conflict. A child whose values are equal, and which another manager
// only owns, is not deferred.
func (c *childConflict) defers(drifted func() v1alpha1.DriftFinding, now time.Time) bool {
	if c.tripped() && !now.Before(c.due) || !c.tripped() && !c.reachedThreshold(now) {
		return false
	}
	finding := drifted()
	switch {
	case len(changesIn(&finding)) == 0:
		return false
	case c.tripped() && !c.contests(&finding) && !c.repeated(change{manager: finding.Manager}, now):
		return false
	case c.tripped():
	case c.contest(&finding, now):
		c.count, c.interval = conflictThreshold, firstCorrectionInterval
		c.due = c.corrected.Add(c.interval)
	default:
		return false
	}
	// The finding stays until the next correction, so that further changes of the other
	// manager cost no status writes.
	if !c.deferred {
		c.finding, c.deferred = finding, true
	}
	return now.Before(c.due)
}

// contest adds the changes that were corrected often enough to the conflict, and reports
// whether there are any.
func (c *childConflict) contest(finding *v1alpha1.DriftFinding, now time.Time) bool {
	added := false
	for _, one := range changesIn(finding) {
		if !c.repeated(one, now) {
			continue
		}
		added = true
		if c.contested == nil {
			c.contested = map[change]int{}
		}
		if c.contested[one] == 0 {
			c.contested[one] = conflictThreshold
		}
	}
	return added
}

// reachedThreshold reports whether any change was corrected often enough for a conflict.
func (c *childConflict) reachedThreshold(now time.Time) bool {
	for one := range c.corrections {
		if c.repeated(one, now) {
			return true
		}
	}
	return false
}

func (c *childConflict) repeated(one change, now time.Time) bool {
	times := c.corrections[one]
	return len(times) == conflictThreshold && now.Sub(times[0]) <= conflictWindow
}

// ends returns when the conflict ends if the child stays in sync.
func (c *childConflict) ends() time.Time {
	if c.inSyncSince.After(c.corrected) {
		return c.inSyncSince.Add(conflictWindow)
	}
	return c.corrected.Add(conflictWindow)
}

// wait returns the time to the next correction, or to the end of the conflict.
func (c *childConflict) wait(now time.Time) time.Duration {
	if c.inSync {
		return max(time.Millisecond, c.ends().Sub(now))
	}
	return max(time.Millisecond, c.due.Sub(now))
}

// changesIn returns the changes that a finding names.
func changesIn(f *v1alpha1.DriftFinding) []change {
	if f.Deleted {
		return []change{{manager: f.Manager}}
	}
	changes := make([]change, 0, len(f.Fields))
	for _, field := range f.Fields {
		changes = append(changes, change{manager: f.ManagerOf(field), field: field, foreign: f.Foreign})
	}
	return changes
}

// defers reports whether the correction of a child is deferred. drifted returns the drift,
// and is called only where it matters.
func (b conflictBreaker) defers(child apply.Key, drifted func() v1alpha1.DriftFinding, now time.Time) bool {
	c := b[child]
	return c != nil && c.defers(drifted, now)
}

// conflicts is what the status shows of the conflicts of one MemberCache.
type conflicts struct {
	// descriptions of each child in a conflict. open is the drift of those that are not in
	// sync now, as far as is known.
	descriptions []string
	open         []v1alpha1.DriftFinding
	// attempts of the throttled kind, and the due time of the next correction of open.
	attempts int32
	due      time.Time
	// requeue is the time to the next correction or end, 0 if nothing is due.
	requeue time.Duration
}

// update records what a report shows of each child, and returns the conflicts that
// continue.
func (b *conflictBreaker) update(report *apply.Report, now time.Time) conflicts {
	for i := range report.Changes {
		if c := &report.Changes[i]; c.Drifted() {
			b.child(c.Key).recordCorrection(describeChange(c), now)
		}
	}
	drifted, refused := map[apply.Key]bool{}, map[apply.Key]bool{}
	for i := range report.Remaining {
		o := &report.Remaining[i]
		drifted[o.Key] = drifted[o.Key] || !o.Foreign && !o.Refused
		refused[o.Key] = refused[o.Key] || o.Refused
	}
	var continuing conflicts
	for _, child := range slices.SortedFunc(maps.Keys(*b), func(a, b apply.Key) int { return strings.Compare(a.String(), b.String()) }) {
		c := (*b)[child]
		if slices.Contains(report.Unobserved, child) || refused[child] {
			// The child was not read, or its correction was refused. The failure of the
			// read or write decides when to retry.
			if c.tripped() {
				continuing.add(child, c)
			}
			continue
		}
		inSync := !slices.Contains(report.Deferred, child)
		if inSync && !c.inSync {
			c.inSyncSince, c.deferred = now, false
		}
		c.inSync = inSync
		if drifted[child] || inSync && !now.Before(c.ends()) {
			// The policy leaves the drift, or the other manager has stopped.
			delete(*b, child)
			continue
		}
		if c.tripped() {
			continuing.add(child, c)
			continuing.requeueAfter(c.wait(now))
		}
	}
	return continuing
}

func (b *conflictBreaker) child(key apply.Key) *childConflict {
	if *b == nil {
		*b = conflictBreaker{}
	}
	if (*b)[key] == nil {
		(*b)[key] = &childConflict{}
	}
	return (*b)[key]
}

// tripped returns the children that are in a conflict.
func (b conflictBreaker) tripped() []string {
	var children []string
	for key, c := range b {
		if c.tripped() {
			children = append(children, key.String())
		}
	}
	slices.Sort(children)
	return children
}

func (s *conflicts) add(child apply.Key, c *childConflict) {
	s.descriptions = append(s.descriptions, child.String()+": "+c.describe())
	if c.inSync {
		return
	}
	s.open = append(s.open, c.finding)
	s.attempts = max(s.attempts, int32(c.count-conflictThreshold+1))
	if s.due.IsZero() || c.due.Before(s.due) {
		s.due = c.due
	}
}

func (s *conflicts) requeueAfter(wait time.Duration) {
	if s.requeue == 0 || wait < s.requeue {
		s.requeue = wait
	}
}

// describe names each manager in the conflict, its fields and the number of corrections.
func (c *childConflict) describe() string {
	type group struct {
		manager          string
		count            int
		deleted, foreign bool
	}
	fields := map[group][]string{}
	for one, count := range c.contested {
		g := group{one.manager, count, one.field == "", one.foreign}
		fields[g] = append(fields[g], one.field)
	}
	var parts []string
	for g, names := range fields {
		slices.Sort(names)
		what := strings.Join(names, ", ") + " changed"
		switch {
		case g.deleted:
			what = "deleted"
		case g.foreign:
			what = strings.Join(names, ", ") + " added"
		}
		by := "by " + g.manager
		if g.manager == drift.Unknown {
			by = "by an unknown manager"
		}
		parts = append(parts, fmt.Sprintf("%s %d times %s", what, g.count, by))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// failure returns the conflicts as a failure, or nil if there are none. It changes with a
// correction only.
func (s *conflicts) failure() *failure.Failure {
	if len(s.descriptions) == 0 {
		return nil
	}
	return &failure.Failure{Class: v1alpha1.ClassConflict, Reason: v1alpha1.ReasonDriftFight, SelfResolving: true,
		Message: strings.Join(s.descriptions, "; ") + "; corrections are throttled",
		Hint:    "stop the other manager, or let it own the field with a rule in spec.drift.ignore"}
}

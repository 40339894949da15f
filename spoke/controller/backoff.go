package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// pace is how a kind of failure is tried again: first after first, then after
// twice as long each time, up to last.
type pace struct{ first, last time.Duration }

var (
	// transientPace is for what passes by itself, and for requests that went wrong to a
	// member that still counts as connected.
	transientPace = pace{100 * time.Millisecond, time.Minute}
	// blockedPace is for what no event announces, such as a quota that was raised. Each
	// try is a request to write.
	blockedPace = pace{5 * time.Second, 5 * time.Minute}
	// foreignPace is for somebody else's object: its tries only read.
	foreignPace = pace{5 * time.Second, time.Minute}
)

// longestRetryAfter bounds what a server may ask for: a proxy that names an hour
// would keep a member from being looked at that long.
const longestRetryAfter = 5 * time.Minute

// Retries of one member, beyond which they are spread out: hundreds of caches that
// failed together would otherwise come back together. First tries and events never
// wait for it.
const (
	retryRate  = 20
	retryBurst = 50
)

func (p pace) after(attempt int32) time.Duration {
	wait := p.first
	for ; attempt > 1 && wait < p.last; attempt-- {
		wait *= 2
	}
	return min(wait, p.last)
}

// attempt is how often the same failure was met while the waits grew, and when the
// next try is due while they still do, as the status shows it.
type attempt struct {
	count int32
	at    *metav1.Time
	// passing: it may well be over before anybody has read of it.
	passing bool
}

// patience is how many tries, and how long, a failure that passes by itself gets
// before the status shows it.
const (
	patience     = 4
	patienceTime = 5 * time.Second
)

// retries knows when each MemberCache of one member is to be tried again. It is
// only in memory; after a restart it counts on from the saved status.
type retries struct {
	jitter func(time.Duration) time.Duration

	mu     sync.Mutex
	budget *rate.Limiter
	failed map[types.NamespacedName]*failedTry
}

// failedTry is the present failure of a MemberCache.
type failedTry struct {
	attempt
	generation int64
	class      v1alpha1.ErrorClass
	reason     string
	since, due time.Time
	// hold: the server asked not to be asked before due, so events wait too.
	hold bool
	// nudged: an event came since, so the next try is not a retry.
	nudged bool
	// granted: the budget has let the retry that is due through, from then on.
	granted time.Time
}

func newRetries() *retries {
	return &retries{jitter: jittered, budget: rate.NewLimiter(retryRate, retryBurst), failed: map[types.NamespacedName]*failedTry{}}
}

// nudge notes that an event came, so that the next try does not wait.
func (r *retries) nudge(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.failed[key]; f != nil {
		f.nudged = true
	}
}

// forget starts anew.
func (r *retries) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, key)
}

// admit says how long a try has to wait yet, 0 if it may begin; retried is the class
// of the failure that it is a retry of, empty if it is a first one or an event's.
func (r *retries) admit(key types.NamespacedName, generation int64, now time.Time) (wait time.Duration, retried v1alpha1.ErrorClass) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failed[key]
	if f == nil || f.generation != generation {
		return 0, ""
	}
	if left := f.due.Sub(now); f.hold && left > 0 && left <= longestRetryAfter*2 {
		return left, ""
	}
	if f.nudged || now.Before(f.due) {
		f.nudged = false
		return 0, ""
	}
	if f.granted.IsZero() {
		f.granted = now.Add(r.budget.ReserveN(now, 1).DelayFrom(now))
	}
	return max(0, f.granted.Sub(now)), f.class
}

// next notes what came of a try and gives how long to wait for the next one, 0 if
// only an event brings it. shown is the failure that the status tells of, all are
// those that were met, and saved is the outcome that the status held before.
//
// A try that came before it was due, because of an event, leaves count and time as
// they are: a member whose pods change while it is blocked neither waits longer for
// that nor costs a write. So does one that comes when the waits grow no more: what
// stays blocked for days is told of once.
func (r *retries) next(key types.NamespacedName, generation int64, shown *failure.Failure, all []*failure.Failure, saved savedOutcome, now time.Time) (time.Duration, attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shown == nil {
		delete(r.failed, key)
		return 0, attempt{}
	}
	plan := planOf(append([]*failure.Failure{shown}, all...))
	if !plan.again {
		delete(r.failed, key)
		return 0, attempt{}
	}
	f := r.failed[key]
	first := f == nil || f.generation != generation || f.class != shown.Class || f.reason != shown.Reason
	if first {
		f = &failedTry{generation: generation, class: shown.Class, reason: shown.Reason, since: now}
		r.failed[key] = f
	}
	known := first && saved.tells(generation, shown)
	if known {
		f.attempt = attempt{count: saved.Attempt, at: saved.RetryAt}
	}
	// What is due later than this was so by a clock that has been set back since.
	longest := 2 * max(plan.after(f.count+1), plan.atLeast)
	switch {
	case known:
		// The manager was started anew, or the member woken: this is no news.
		if saved.RetryAt != nil {
			f.due = saved.RetryAt.Time
		}
		if left := f.due.Sub(now); left <= 0 || left > longest || left < plan.atLeast {
			f.due = r.dueAfter(plan, f.count, now)
		}
	case !first && now.Before(f.due) && f.due.Sub(now) <= longest && plan.atLeast <= f.due.Sub(now):
	default:
		if !plan.steady(f.count) {
			f.count++
		}
		f.due = r.dueAfter(plan, f.count, now)
		f.at = shownTime(f.due)
		if plan.steady(f.count) {
			f.at = nil
		}
	}
	f.hold, f.granted = plan.atLeast > 0, time.Time{}
	wait := max(f.due.Sub(now), time.Millisecond)
	told := f.attempt
	told.passing = (shown.Class == v1alpha1.ClassTransient || shown.Class == v1alpha1.ClassUnreachable) &&
		f.count < patience && now.Sub(f.since) < patienceTime && wait < patienceTime &&
		// That a child is being recreated is told before it begins.
		shown.Reason != v1alpha1.ReasonRecreating
	if waitsForSpec(shown) || shown.Reason == v1alpha1.ReasonObjectOfAnother {
		// What is tried again is another child, and this one waits for the spec; or to
		// look whether somebody else's object is still there is no try, it changes nothing.
		told = attempt{}
	}
	return wait, told
}

func (r *retries) dueAfter(plan retryPlan, count int32, now time.Time) time.Time {
	return now.Add(max(r.jitter(plan.after(count)), plan.atLeast))
}

// shownTime is a time as JSON keeps it, never before it is really due.
func shownTime(due time.Time) *metav1.Time {
	return &metav1.Time{Time: due.Add(time.Second - 1).Truncate(time.Second)}
}

// savedOutcome is what the status said before, about which generation.
type savedOutcome struct {
	v1alpha1.Outcome
	generation int64
}

func (s *savedOutcome) tells(generation int64, f *failure.Failure) bool {
	// A member that does not answer keeps the generation that was seen last.
	return (s.generation == generation || f.Class == v1alpha1.ClassUnreachable) && s.Class == f.Class && s.Reason == f.Reason && s.Attempt > 0
}

// retryPlan is the soonest pace of several failures, and the longest wait that a
// server asked for.
type retryPlan struct {
	again   bool
	paces   []pace
	atLeast time.Duration
}

func (p retryPlan) after(attempt int32) time.Duration {
	wait := p.paces[0].after(attempt)
	for _, other := range p.paces[1:] {
		wait = min(wait, other.after(attempt))
	}
	return wait
}

// steady says that the wait after so many tries is as long as it gets.
func (p retryPlan) steady(attempt int32) bool {
	return attempt > 1 && p.after(attempt) == p.after(attempt+1)
}

// waitsForSpec: nothing but another spec, or an event of a child, makes it pass.
func waitsForSpec(f *failure.Failure) bool {
	return f.Class == v1alpha1.ClassInvalid || f.Reason == v1alpha1.ReasonImmutableField
}

func planOf(failures []*failure.Failure) retryPlan {
	var plan retryPlan
	for _, f := range failures {
		var p pace
		switch {
		case waitsForSpec(f):
			continue
		case f.Reason == v1alpha1.ReasonObjectOfAnother:
			p = foreignPace
		case f.Class == v1alpha1.ClassBlocked:
			p = blockedPace
		default:
			p = transientPace
			plan.atLeast = max(plan.atLeast, min(f.RetryAfter, longestRetryAfter))
		}
		plan.again = true
		plan.paces = append(plan.paces, p)
	}
	return plan
}

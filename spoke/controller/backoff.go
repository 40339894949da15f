package controller

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// intervals are the retry intervals of a kind of failure: the first, then twice as long
// each time, up to the longest.
type intervals struct{ first, longest time.Duration }

var (
	// transientIntervals are for failures that pass without help, and for failed requests
	// to a member that still counts as connected.
	transientIntervals = intervals{100 * time.Millisecond, time.Minute}
	// blockedIntervals are for failures whose end no event announces, such as a quota that
	// was raised. Each retry is a write request.
	blockedIntervals = intervals{5 * time.Second, 5 * time.Minute}
	// otherOwnerIntervals are for another owner's object: a retry only reads.
	otherOwnerIntervals = intervals{5 * time.Second, time.Minute}
)

// maxRetryAfter bounds the Retry-After of a server: a proxy that names an hour would stop
// all work on a member for that long.
const maxRetryAfter = 5 * time.Minute

// Retries of one member beyond this rate are spread out: hundreds of MemberCaches that
// failed together would otherwise retry together. First attempts and events are never
// delayed by it.
const (
	retryRate  = 20
	retryBurst = 50
)

func (i intervals) after(attempt int32) time.Duration {
	wait := i.first
	for ; attempt > 1 && wait < i.longest; attempt-- {
		wait *= 2
	}
	return min(wait, i.longest)
}

// attempt is the part of a backoff that the status shows: how often the same failure
// occurred while the interval grew, and when the next retry is due while it still grows.
type attempt struct {
	count int32
	at    *metav1.Time
	// passing reports whether the failure may be over before anyone reads about it.
	passing bool
}

// A failure that may pass gets this many attempts, and this long, before the status
// shows it.
const (
	passingAttempts = 4
	passingTime     = 5 * time.Second
)

// backoff is the current failure of a MemberCache; its zero value is none. After a
// restart it continues from the saved status.
type backoff struct {
	attempt
	generation int64
	class      v1alpha1.ErrorClass
	reason     string
	since, due time.Time
	// retryAfter: the server named the interval, so events wait for due too.
	retryAfter bool
	// triggered: an event arrived since, so the next attempt is not a retry.
	triggered bool
	// granted is when the retry that is due may begin by the member's budget, or zero.
	granted time.Time
}

func (b *backoff) failed() bool { return b.class != "" }

// retries schedules the retries of one member.
type retries struct {
	jitter func(time.Duration) time.Duration
	budget *rate.Limiter
}

func newRetries() *retries {
	return &retries{jitter: jittered, budget: rate.NewLimiter(retryRate, retryBurst)}
}

// admit returns how long an attempt must wait, 0 if it may begin. It also returns the class
// of the retried failure, which is empty for a first attempt or an event.
func (r *retries) admit(b *backoff, generation int64, now time.Time) (wait time.Duration, retried v1alpha1.ErrorClass) {
	if !b.failed() || b.generation != generation {
		return 0, ""
	}
	if remaining := b.due.Sub(now); b.retryAfter && remaining > 0 && remaining <= maxRetryAfter*2 {
		return remaining, ""
	}
	if b.triggered || now.Before(b.due) {
		b.triggered = false
		return 0, ""
	}
	if b.granted.IsZero() {
		b.granted = now.Add(r.budget.ReserveN(now, 1).DelayFrom(now))
	}
	return max(0, b.granted.Sub(now)), b.class
}

// next records the result of an attempt and returns when to retry, 0 if only an event
// can help. shown is the failure that the status shows, all are those that occurred, and
// saved is the outcome of the status before.
//
// An attempt that an event caused before it was due changes neither count nor time:
// a member whose pods change while it is blocked neither waits longer for it nor costs
// a write. The same holds once the interval grows no more: a failure that lasts for days
// is reported once.
func (r *retries) next(b *backoff, generation int64, shown *failure.Failure, all []*failure.Failure, saved savedOutcome, now time.Time) (time.Duration, attempt) {
	plan := retryPlan{}
	if shown != nil {
		plan = planRetry(append([]*failure.Failure{shown}, all...))
	}
	if len(plan.intervals) == 0 {
		*b = backoff{}
		return 0, attempt{}
	}
	first := !b.failed() || b.generation != generation || b.class != shown.Class || b.reason != shown.Reason
	if first {
		*b = backoff{generation: generation, class: shown.Class, reason: shown.Reason, since: now}
	}
	known := first && saved.matches(generation, shown)
	if known {
		b.attempt = attempt{count: saved.Attempt, at: saved.RetryAt}
	}
	// A later due time was computed by a clock that was set back since.
	longest := 2 * max(plan.after(b.count+1), plan.atLeast)
	switch {
	case known:
		// The manager was restarted, or the member reconnected: the failure is not new.
		if saved.RetryAt != nil {
			b.due = saved.RetryAt.Time
		}
		if remaining := b.due.Sub(now); remaining <= 0 || remaining > longest || remaining < plan.atLeast {
			b.due = r.dueAfter(plan, b.count, now)
		}
	case !first && now.Before(b.due) && b.due.Sub(now) <= longest && plan.atLeast <= b.due.Sub(now):
	default:
		if !plan.steady(b.count) {
			b.count++
		}
		b.due = r.dueAfter(plan, b.count, now)
		b.at = shownTime(b.due)
		if plan.steady(b.count) {
			b.at = nil
		}
	}
	b.retryAfter, b.granted = plan.atLeast > 0, time.Time{}
	wait := max(b.due.Sub(now), time.Millisecond)
	return wait, b.shown(shown, wait, now)
}

// shown returns what the status shows of the backoff.
func (b *backoff) shown(f *failure.Failure, wait time.Duration, now time.Time) attempt {
	if needsSpec(f) || f.Reason == v1alpha1.ReasonObjectOfAnother {
		// The retry is for another child, while this one needs another spec. Or the retry
		// only reads whether another owner's object still exists, and changes nothing.
		return attempt{}
	}
	shown := b.attempt
	shown.passing = (f.Class == v1alpha1.ClassTransient || f.Class == v1alpha1.ClassUnreachable) &&
		b.count < passingAttempts && now.Sub(b.since) < passingTime && wait < passingTime &&
		// The recreation of a child is reported before it begins.
		f.Reason != v1alpha1.ReasonRecreating
	return shown
}

func (r *retries) dueAfter(plan retryPlan, count int32, now time.Time) time.Time {
	return now.Add(max(r.jitter(plan.after(count)), plan.atLeast))
}

// jittered spreads d by a fifth in both directions, so that members and MemberCaches
// that failed together do not retry together.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// shownTime returns a due time as JSON keeps it, never earlier than due.
func shownTime(due time.Time) *metav1.Time {
	return &metav1.Time{Time: due.Add(time.Second - 1).Truncate(time.Second)}
}

// savedOutcome is the outcome of the status before, and its generation.
type savedOutcome struct {
	v1alpha1.Outcome
	generation int64
}

// matches reports whether the saved status shows this failure.
func (s *savedOutcome) matches(generation int64, f *failure.Failure) bool {
	// The status of an unreachable member keeps the last generation that was observed.
	return (s.generation == generation || f.Class == v1alpha1.ClassUnreachable) && s.Class == f.Class && s.Reason == f.Reason && s.Attempt > 0
}

// retryPlan is how several failures are retried: by the shortest interval, and not before
// the longest time that a server asked for. Without intervals there is no retry.
type retryPlan struct {
	intervals []intervals
	atLeast   time.Duration
}

func (p retryPlan) after(attempt int32) time.Duration {
	wait := p.intervals[0].after(attempt)
	for _, other := range p.intervals[1:] {
		wait = min(wait, other.after(attempt))
	}
	return wait
}

// steady reports whether the interval grows no more after so many attempts.
func (p retryPlan) steady(attempt int32) bool {
	return attempt > 1 && p.after(attempt) == p.after(attempt+1)
}

// needsSpec reports whether only another spec, or an event of a child, ends the failure.
func needsSpec(f *failure.Failure) bool {
	return f.Class == v1alpha1.ClassInvalid || f.Reason == v1alpha1.ReasonImmutableField
}

func planRetry(failures []*failure.Failure) retryPlan {
	var plan retryPlan
	for _, f := range failures {
		switch {
		case needsSpec(f):
		case f.Reason == v1alpha1.ReasonObjectOfAnother:
			plan.intervals = append(plan.intervals, otherOwnerIntervals)
		case f.Class == v1alpha1.ClassBlocked:
			plan.intervals = append(plan.intervals, blockedIntervals)
		default:
			plan.intervals = append(plan.intervals, transientIntervals)
			plan.atLeast = max(plan.atLeast, min(f.RetryAfter, maxRetryAfter))
		}
	}
	return plan
}

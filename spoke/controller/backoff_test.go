package controller

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// trial drives the backoff of one MemberCache with a fake clock, without jitter.
type trial struct {
	*retries
	backoff backoff
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	saved   savedOutcome
}

func newTrial(t *testing.T) *trial {
	r := newRetries()
	r.jitter = func(d time.Duration) time.Duration { return d }
	return &trial{retries: r, t: t, clock: clocktesting.NewFakePassiveClock(noon)}
}

func (r *trial) pass(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

// fails returns the wait after an attempt that failed, and what the status shows.
func (r *trial) fails(f *failure.Failure, all ...*failure.Failure) (time.Duration, attempt) {
	return r.next(&r.backoff, 1, f, all, r.saved, r.clock.Now())
}

// waits returns the intervals between n attempts that fail in the same way, each when due.
func (r *trial) waits(f *failure.Failure, n int) []time.Duration {
	var all []time.Duration
	for range n {
		wait, _ := r.fails(f)
		all = append(all, wait)
		r.pass(wait)
		if wait, class := r.admit(&r.backoff, 1, r.clock.Now()); wait != 0 || class != f.Class {
			r.t.Fatalf("an attempt that is due waits %s, as a retry of %q", wait, class)
		}
	}
	return all
}

func retryAfter(class v1alpha1.ErrorClass, d time.Duration) *failure.Failure {
	f := failureOf(class, "Reason")
	f.RetryAfter = d
	return f
}

func TestRetries_IntervalsByClass(t *testing.T) {
	ms, s := time.Millisecond, time.Second
	for _, c := range []struct {
		name string
		f    *failure.Failure
		want []time.Duration
		last time.Duration
	}{
		{"a transient failure", failureOf(v1alpha1.ClassTransient, "MemberError"), []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms}, time.Minute},
		{"a failed request to a connected member", failureOf(v1alpha1.ClassUnreachable, "MemberUnreachable"), []time.Duration{100 * ms, 200 * ms}, time.Minute},
		{"a failure that needs a person", failureOf(v1alpha1.ClassBlocked, "QuotaExceeded"), []time.Duration{5 * s, 10 * s, 20 * s}, 5 * time.Minute},
		{"another owner's object", failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother), []time.Duration{5 * s, 10 * s, 20 * s}, time.Minute},
	} {
		got := newTrial(t).waits(c.f, 20)
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%s: wait %d is %s, want %s", c.name, i, got[i], want)
			}
		}
		if got[19] != c.last {
			t.Errorf("%s: the last wait is %s, want %s", c.name, got[19], c.last)
		}
	}
}

func TestRetries_DoNotRetryInvalidSpec(t *testing.T) {
	r := newTrial(t)
	if wait, got := r.fails(failureOf(v1alpha1.ClassInvalid, "InvalidSpec")); wait != 0 || got != (attempt{}) {
		t.Errorf("wait %s, attempt %+v", wait, got)
	}
}

func TestRetries_RetryChildWhileAnotherIsInvalid(t *testing.T) {
	r := newTrial(t)
	invalid := failureOf(v1alpha1.ClassInvalid, "Rejected")
	wait, got := r.fails(invalid, invalid, failureOf(v1alpha1.ClassTransient, "MemberError"))
	if wait != transientIntervals.first || got.count != 0 || got.at != nil {
		t.Errorf("wait %s, shown %+v; the Service would never be created, or the status would promise a retry of the StatefulSet", wait, got)
	}
	wait, _ = r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden"), failureOf(v1alpha1.ClassTransient, "MemberError"))
	if wait != transientIntervals.first {
		t.Errorf("wait %s", wait)
	}
}

func TestRetries_ShowDueTime(t *testing.T) {
	r := newTrial(t)
	for range 6 {
		wait, got := r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden"))
		due := r.clock.Now().Add(wait)
		if diff := due.Sub(got.at.Time); diff > 0 || diff <= -time.Second {
			t.Errorf("shown %s, due %s", got.at, due)
		}
		r.pass(wait)
	}
}

func TestRetries_KeepRetryAfter(t *testing.T) {
	r := newTrial(t)
	busy := retryAfter(v1alpha1.ClassTransient, 7*time.Second)
	if wait, got := r.fails(busy); wait != 7*time.Second || got.passing {
		t.Errorf("wait %s, passing %t: seven seconds are reported", wait, got.passing)
	}
	r.pass(3 * time.Second)
	r.backoff.triggered = true
	if wait, _ := r.admit(&r.backoff, 1, r.clock.Now()); wait != 4*time.Second {
		t.Errorf("an event sends a request %s before Retry-After ends", 4*time.Second-wait)
	}
	if wait, _ := r.admit(&r.backoff, 2, r.clock.Now()); wait != 0 {
		t.Errorf("a new spec waits %s", wait)
	}
	if wait, _ := newTrial(t).fails(retryAfter(v1alpha1.ClassTransient, time.Hour)); wait != maxRetryAfter {
		t.Errorf("a server that names an hour stops requests for %s", wait)
	}
}

func TestRetries_EventChangesNeitherCountNorTime(t *testing.T) {
	r := newTrial(t)
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	r.waits(blocked, 5)
	wait, before := r.fails(blocked)
	for range 50 {
		r.pass(time.Second)
		wait -= time.Second
		r.backoff.triggered = true
		if wait, class := r.admit(&r.backoff, 1, r.clock.Now()); wait != 0 || class != "" {
			t.Fatalf("an event waits %s, as a retry of %q", wait, class)
		}
		got, shown := r.fails(blocked)
		if got != wait || shown.count != before.count || !shown.at.Equal(before.at) {
			t.Fatalf("wait %s, want %s; shown %+v, want %+v", got, wait, shown, before)
		}
	}
}

// A failure that lasts for days must not cost the hub a write every few minutes, before or
// after a restart.
func TestRetries_ReportNothingNewAtLongestInterval(t *testing.T) {
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	r := newTrial(t)
	r.waits(blocked, 6)
	wait, before := r.fails(blocked)
	if wait != blockedIntervals.longest || before.count != 7 || before.at != nil {
		t.Fatalf("after 7 attempts: wait %s, shown %+v", wait, before)
	}
	for range 100 {
		r.pass(wait)
		again, got := r.fails(blocked)
		if again != blockedIntervals.longest || got != before {
			t.Fatalf("wait %s, shown %+v, want what was shown before, %+v", again, got, before)
		}
	}
	again := newTrial(t)
	again.saved = savedOutcome{Outcome: blocked.Outcome(), generation: 1}
	again.saved.Attempt = before.count
	if wait, got := again.fails(blocked); wait != blockedIntervals.longest || got != before {
		t.Errorf("after a restart: wait %s, shown %+v, want %+v", wait, got, before)
	}
	again.pass(wait)
	if wait, got := again.fails(blocked); wait != blockedIntervals.longest || got != before {
		t.Errorf("the next attempt: wait %s, shown %+v, want %+v", wait, got, before)
	}
}

func TestRetries_DoNotCountReadsOfAnotherOwnersObject(t *testing.T) {
	r := newTrial(t)
	foreign := failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother)
	for range 8 {
		wait, got := r.fails(foreign)
		if wait == 0 || got != (attempt{}) {
			t.Fatalf("wait %s, shown %+v", wait, got)
		}
		r.pass(wait)
	}
}

func TestRetries_StartAgainForAnotherReasonOrSpec(t *testing.T) {
	r := newTrial(t)
	r.waits(failureOf(v1alpha1.ClassBlocked, "QuotaExceeded"), 5)
	if wait, got := r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden")); wait != blockedIntervals.first || got.count != 1 {
		t.Errorf("another reason: wait %s, attempt %d", wait, got.count)
	}
	r.waits(failureOf(v1alpha1.ClassBlocked, "Forbidden"), 5)
	if wait, got := r.next(&r.backoff, 2, failureOf(v1alpha1.ClassBlocked, "Forbidden"), nil, r.saved, r.clock.Now()); wait != blockedIntervals.first || got.count != 1 {
		t.Errorf("another spec: wait %s, attempt %d", wait, got.count)
	}
	r.next(&r.backoff, 2, nil, nil, r.saved, r.clock.Now())
	if wait, got := r.next(&r.backoff, 2, failureOf(v1alpha1.ClassBlocked, "Forbidden"), nil, r.saved, r.clock.Now()); wait != blockedIntervals.first || got.count != 1 {
		t.Errorf("after a success: wait %s, attempt %d", wait, got.count)
	}
}

// A restarted manager must not write a status that reports the same.
func TestRetries_ContinueAfterRestart(t *testing.T) {
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	before := newTrial(t)
	before.waits(blocked, 5)
	_, shown := before.fails(blocked)
	saved := savedOutcome{Outcome: blocked.Outcome(), generation: 1}
	saved.Attempt, saved.RetryAt = shown.count, shown.at
	for _, c := range []struct {
		name         string
		passed, want time.Duration
	}{
		{"before the next attempt was due", 10 * time.Second, shown.at.Sub(before.clock.Now().Add(10 * time.Second))},
		{"long after the next attempt was due", time.Hour, blockedIntervals.after(shown.count)},
		{"with a clock that was set back", -time.Hour, blockedIntervals.after(shown.count)},
	} {
		r := newTrial(t)
		r.saved = saved
		r.clock.SetTime(before.clock.Now().Add(c.passed))
		wait, again := r.fails(blocked)
		if wait != c.want || again.count != shown.count || !again.at.Equal(shown.at) {
			t.Errorf("%s: wait %s, want %s; shown %+v, want %+v", c.name, wait, c.want, again, shown)
		}
		r.pass(wait)
		if _, next := r.fails(blocked); next.count != shown.count+1 {
			t.Errorf("%s: the next attempt is number %d, want %d", c.name, next.count, shown.count+1)
		}
	}
	r := newTrial(t)
	r.saved = saved
	if _, got := r.next(&r.backoff, 2, blocked, nil, r.saved, r.clock.Now()); got.count != 1 {
		t.Errorf("a changed spec starts with attempt %d", got.count)
	}
}

func TestRetries_SurviveClockThatIsSetBack(t *testing.T) {
	r := newTrial(t)
	transient := retryAfter(v1alpha1.ClassTransient, 2*time.Second)
	r.waits(transient, 3)
	r.fails(transient)
	r.pass(-24 * time.Hour)
	if wait, _ := r.admit(&r.backoff, 1, r.clock.Now()); wait != 0 {
		t.Fatalf("waits %s", wait)
	}
	if wait, _ := r.fails(transient); wait > 2*transientIntervals.longest {
		t.Errorf("the next attempt is due after %s", wait)
	}
}

func TestRetries_SpreadHundredsOfRetries(t *testing.T) {
	r := newTrial(t)
	const caches = 450
	backoffs := make([]backoff, caches+1)
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	for i := range caches {
		r.next(&backoffs[i], 1, blocked, nil, savedOutcome{}, r.clock.Now())
	}
	r.pass(blockedIntervals.first)
	waits := map[int]time.Duration{}
	admitted := 0
	for i := range caches {
		waits[i], _ = r.admit(&backoffs[i], 1, r.clock.Now())
		if waits[i] == 0 {
			admitted++
		}
	}
	if admitted != retryBurst {
		t.Errorf("%d retries without a wait, want %d", admitted, retryBurst)
	}
	if want := (caches - retryBurst) * time.Second / retryRate; waits[caches-1] != want {
		t.Errorf("the last one waits %s, want %s", waits[caches-1], want)
	}
	// Meanwhile events and new MemberCaches do not wait.
	backoffs[300].triggered = true
	if wait, class := r.admit(&backoffs[300], 1, r.clock.Now()); wait != 0 || class != "" {
		t.Errorf("an event waits %s", wait)
	}
	if wait, _ := r.admit(&backoffs[caches], 1, r.clock.Now()); wait != 0 {
		t.Errorf("a first attempt waits %s", wait)
	}
	r.pass(waits[caches-1])
	for i := range caches {
		if wait, _ := r.admit(&backoffs[i], 1, r.clock.Now()); wait != 0 {
			t.Fatalf("retry %d still waits %s when its time has come", i, wait)
		}
	}
}

func TestRetries_FailureMayPassForFourAttemptsAndFiveSeconds(t *testing.T) {
	r := newTrial(t)
	transient := failureOf(v1alpha1.ClassTransient, "MemberError")
	for n := 1; n <= 5; n++ {
		wait, got := r.fails(transient)
		if got.passing != (n < passingAttempts) {
			t.Errorf("attempt %d: passing %t", n, got.passing)
		}
		r.pass(wait)
	}
	slow := newTrial(t)
	slow.fails(transient)
	slow.pass(10 * time.Second)
	if _, got := slow.fails(transient); got.passing {
		t.Error("a member that takes ten seconds for each attempt is not reported")
	}
	if _, got := newTrial(t).fails(failureOf(v1alpha1.ClassBlocked, "Forbidden")); got.passing {
		t.Error("a failure that needs a person is not shown at once")
	}
}

func TestJittered_SpreadsByAFifth(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		d := jittered(10 * time.Second)
		if d < 8*time.Second || d > 12*time.Second {
			t.Fatalf("%s", d)
		}
		seen[d] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d different waits of 100", len(seen))
	}
}

func TestSummarize_AnotherAttemptChangesCountAndTimeOnly(t *testing.T) {
	mc := wasReady()
	blocked := result{failure: failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden)}
	due := shownTime(noon.Add(5 * time.Second))
	blocked.attempt = attempt{count: 1, at: due}
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, &blocked)
	first := *mc.Status.DeepCopy()
	if first.Attempt != 1 || !first.RetryAt.Equal(due) || first.Since == nil {
		t.Fatalf("attempt %d, retry at %v, since %v", first.Attempt, first.RetryAt, first.Since)
	}
	blocked.attempt = attempt{count: 2, at: shownTime(noon.Add(15 * time.Second))}
	second := summarize(&snapshot{now: noon.Add(5 * time.Second), cache: mc}, &blocked)
	if second.Attempt != 2 || second.RetryAt.Equal(due) {
		t.Errorf("attempt %d, retry at %v", second.Attempt, second.RetryAt)
	}
	if !second.Since.Equal(first.Since) || !second.ObservedAt.Equal(first.ObservedAt) || len(second.Conditions) != len(first.Conditions) {
		t.Errorf("since %v, observed at %v; were %v, %v", second.Since, second.ObservedAt, first.Since, first.ObservedAt)
	}
	mc.Status = second
	over := summarize(&snapshot{now: noon.Add(15 * time.Second), cache: mc}, &result{observation: readyIs})
	if over.Attempt != 0 || over.RetryAt != nil || over.Class != "" {
		t.Errorf("it is over, and the status shows attempt %d at %v (%s)", over.Attempt, over.RetryAt, over.Class)
	}
}

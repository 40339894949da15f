package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// trial drives retries with a fake clock, without jitter.
type trial struct {
	*retries
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	saved savedOutcome
}

var tried = types.NamespacedName{Namespace: "shop", Name: "sessions.a"}

func newTrial(t *testing.T) *trial {
	r := newRetries()
	r.jitter = func(d time.Duration) time.Duration { return d }
	return &trial{retries: r, t: t, clock: clocktesting.NewFakePassiveClock(noon)}
}

func (r *trial) pass(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

// fails says what comes of a try that fails so.
func (r *trial) fails(f *failure.Failure, all ...*failure.Failure) (time.Duration, attempt) {
	return r.next(tried, 1, f, all, r.saved, r.clock.Now())
}

// waits are those between n tries that fail in the same way, each when it is due.
func (r *trial) waits(f *failure.Failure, n int) []time.Duration {
	var all []time.Duration
	for range n {
		wait, _ := r.fails(f)
		all = append(all, wait)
		r.pass(wait)
		if left, class := r.admit(tried, 1, r.clock.Now()); left != 0 || class != f.Class {
			r.t.Fatalf("a try that is due waits %s, as a retry of %q", left, class)
		}
	}
	return all
}

func retryAfter(class v1alpha1.ErrorClass, d time.Duration) *failure.Failure {
	f := failureOf(class, "Reason")
	f.RetryAfter = d
	return f
}

func TestEachKindOfFailureHasItsPace(t *testing.T) {
	ms, s := time.Millisecond, time.Second
	for _, c := range []struct {
		name string
		f    *failure.Failure
		want []time.Duration
		last time.Duration
	}{
		{"what passes", failureOf(v1alpha1.ClassTransient, "MemberError"), []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms}, time.Minute},
		{"a broken request to a member that is there", failureOf(v1alpha1.ClassUnreachable, "MemberUnreachable"), []time.Duration{100 * ms, 200 * ms}, time.Minute},
		{"what somebody has to do", failureOf(v1alpha1.ClassBlocked, "QuotaExceeded"), []time.Duration{5 * s, 10 * s, 20 * s}, 5 * time.Minute},
		{"somebody else's object", failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother), []time.Duration{5 * s, 10 * s, 20 * s}, time.Minute},
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

func TestWhatOnlyTheSpecCanMendIsNotTriedAgain(t *testing.T) {
	r := newTrial(t)
	if wait, got := r.fails(failureOf(v1alpha1.ClassInvalid, "InvalidSpec")); wait != 0 || got != (attempt{}) {
		t.Errorf("wait %s, attempt %+v", wait, got)
	}
}

func TestAChildThatCanBeTriedAgainIsHoweverAnotherIsShown(t *testing.T) {
	r := newTrial(t)
	invalid := failureOf(v1alpha1.ClassInvalid, "Rejected")
	wait, got := r.fails(invalid, invalid, failureOf(v1alpha1.ClassTransient, "MemberError"))
	if wait != transientPace.first || got.count != 0 || got.at != nil {
		t.Errorf("wait %s, told %+v; the Service would never come, or the StatefulSet's status would promise a try", wait, got)
	}
	wait, _ = r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden"), failureOf(v1alpha1.ClassTransient, "MemberError"))
	if wait != transientPace.first {
		t.Errorf("wait %s", wait)
	}
}

func TestTheTimeThatIsToldIsTheTimeThatIsAskedFor(t *testing.T) {
	r := newTrial(t)
	for range 6 {
		wait, got := r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden"))
		due := r.clock.Now().Add(wait)
		if early := due.Sub(got.at.Time); early > 0 || early <= -time.Second {
			t.Errorf("told %s, asked for %s", got.at, due)
		}
		r.pass(wait)
	}
}

func TestWhatTheServerAskedForIsKept(t *testing.T) {
	r := newTrial(t)
	busy := retryAfter(v1alpha1.ClassTransient, 7*time.Second)
	if wait, got := r.fails(busy); wait != 7*time.Second || got.passing {
		t.Errorf("wait %s, passing %t: seven seconds are worth telling", wait, got.passing)
	}
	r.pass(3 * time.Second)
	r.nudge(tried)
	if left, _ := r.admit(tried, 1, r.clock.Now()); left != 4*time.Second {
		t.Errorf("an event asks the server again %s too early", 4*time.Second-left)
	}
	if left, _ := r.admit(tried, 2, r.clock.Now()); left != 0 {
		t.Errorf("a new spec waits %s", left)
	}
	if wait, _ := newTrial(t).fails(retryAfter(v1alpha1.ClassTransient, time.Hour)); wait != longestRetryAfter {
		t.Errorf("a server that names an hour is not asked for %s", wait)
	}
}

func TestAnEventMeanwhileCostsNeitherCountNorTime(t *testing.T) {
	r := newTrial(t)
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	r.waits(blocked, 5)
	wait, before := r.fails(blocked)
	for range 50 {
		r.pass(time.Second)
		wait -= time.Second
		r.nudge(tried)
		if left, class := r.admit(tried, 1, r.clock.Now()); left != 0 || class != "" {
			t.Fatalf("an event waits %s, as a retry of %q", left, class)
		}
		got, told := r.fails(blocked)
		if got != wait || told.count != before.count || !told.at.Equal(before.at) {
			t.Fatalf("wait %s, want %s; told %+v, want %+v", got, wait, told, before)
		}
	}
}

// What stays blocked for days must not cost the hub a write each few minutes, before
// or after a restart.
func TestWhenTheWaitsGrowNoMoreNothingNewIsTold(t *testing.T) {
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	r := newTrial(t)
	r.waits(blocked, 6)
	wait, before := r.fails(blocked)
	if wait != blockedPace.last || before.count != 7 || before.at != nil {
		t.Fatalf("after 7 tries: wait %s, told %+v", wait, before)
	}
	for range 100 {
		r.pass(wait)
		again, got := r.fails(blocked)
		if again != blockedPace.last || got != before {
			t.Fatalf("wait %s, told %+v, want what was told before, %+v", again, got, before)
		}
	}
	again := newTrial(t)
	again.saved = savedOutcome{Outcome: blocked.Outcome(), generation: 1}
	again.saved.Attempt = before.count
	if wait, got := again.fails(blocked); wait != blockedPace.last || got != before {
		t.Errorf("after a restart: wait %s, told %+v, want %+v", wait, got, before)
	}
	again.pass(wait)
	if wait, got := again.fails(blocked); wait != blockedPace.last || got != before {
		t.Errorf("the try after that: wait %s, told %+v, want %+v", wait, got, before)
	}
}

func TestToLookAtSomebodyElsesObjectIsNoTry(t *testing.T) {
	r := newTrial(t)
	foreign := failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonObjectOfAnother)
	for range 8 {
		wait, got := r.fails(foreign)
		if wait == 0 || got != (attempt{}) {
			t.Fatalf("wait %s, told %+v", wait, got)
		}
		r.pass(wait)
	}
}

func TestAnotherReasonOrSpecStartsAnew(t *testing.T) {
	r := newTrial(t)
	r.waits(failureOf(v1alpha1.ClassBlocked, "QuotaExceeded"), 5)
	if wait, got := r.fails(failureOf(v1alpha1.ClassBlocked, "Forbidden")); wait != blockedPace.first || got.count != 1 {
		t.Errorf("another reason: wait %s, try %d", wait, got.count)
	}
	r.waits(failureOf(v1alpha1.ClassBlocked, "Forbidden"), 5)
	if wait, got := r.next(tried, 2, failureOf(v1alpha1.ClassBlocked, "Forbidden"), nil, r.saved, r.clock.Now()); wait != blockedPace.first || got.count != 1 {
		t.Errorf("another spec: wait %s, try %d", wait, got.count)
	}
	r.next(tried, 2, nil, nil, r.saved, r.clock.Now())
	if wait, got := r.next(tried, 2, failureOf(v1alpha1.ClassBlocked, "Forbidden"), nil, r.saved, r.clock.Now()); wait != blockedPace.first || got.count != 1 {
		t.Errorf("after a success: wait %s, try %d", wait, got.count)
	}
}

// A manager that is started anew must not write a status that says the same.
func TestARestartCountsOnFromWhatWasSaved(t *testing.T) {
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	before := newTrial(t)
	before.waits(blocked, 5)
	_, told := before.fails(blocked)
	saved := savedOutcome{Outcome: blocked.Outcome(), generation: 1}
	saved.Attempt, saved.RetryAt = told.count, told.at
	for _, c := range []struct {
		name         string
		passed, want time.Duration
	}{
		{"before the next try was due", 10 * time.Second, told.at.Sub(before.clock.Now().Add(10 * time.Second))},
		{"long after", time.Hour, blockedPace.after(told.count)},
		{"with a clock that was set back", -time.Hour, blockedPace.after(told.count)},
	} {
		r := newTrial(t)
		r.saved = saved
		r.clock.SetTime(before.clock.Now().Add(c.passed))
		wait, again := r.fails(blocked)
		if wait != c.want || again.count != told.count || !again.at.Equal(told.at) {
			t.Errorf("%s: wait %s, want %s; told %+v, want %+v", c.name, wait, c.want, again, told)
		}
		r.pass(wait)
		if _, next := r.fails(blocked); next.count != told.count+1 {
			t.Errorf("%s: the try after is number %d, want %d", c.name, next.count, told.count+1)
		}
	}
	r := newTrial(t)
	r.saved = saved
	if _, got := r.next(tried, 2, blocked, nil, r.saved, r.clock.Now()); got.count != 1 {
		t.Errorf("a spec that was changed meanwhile starts with try %d", got.count)
	}
}

func TestAClockThatIsSetBackDelaysNothingForLong(t *testing.T) {
	r := newTrial(t)
	transient := retryAfter(v1alpha1.ClassTransient, 2*time.Second)
	r.waits(transient, 3)
	r.fails(transient)
	r.pass(-24 * time.Hour)
	if left, _ := r.admit(tried, 1, r.clock.Now()); left != 0 {
		t.Fatalf("waits %s", left)
	}
	if wait, _ := r.fails(transient); wait > 2*transientPace.last {
		t.Errorf("the next try comes after %s", wait)
	}
}

func TestHundredsOfRetriesOfAMemberAreSpreadOut(t *testing.T) {
	r := newTrial(t)
	const caches = 450
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("cache-", i)}
	}
	blocked := failureOf(v1alpha1.ClassBlocked, "QuotaExceeded")
	for i := range caches {
		r.next(key(i), 1, blocked, nil, savedOutcome{}, r.clock.Now())
	}
	r.pass(blockedPace.first)
	waits := map[int]time.Duration{}
	atOnce := 0
	for i := range caches {
		waits[i], _ = r.admit(key(i), 1, r.clock.Now())
		if waits[i] == 0 {
			atOnce++
		}
	}
	if atOnce != retryBurst {
		t.Errorf("%d retries at once, want %d", atOnce, retryBurst)
	}
	if want := (caches - retryBurst) * time.Second / retryRate; waits[caches-1] != want {
		t.Errorf("the last one waits %s, want %s", waits[caches-1], want)
	}
	// Meanwhile an event is worked off at once, and so is a cache that is new.
	r.nudge(key(300))
	if left, class := r.admit(key(300), 1, r.clock.Now()); left != 0 || class != "" {
		t.Errorf("an event waits %s", left)
	}
	if left, _ := r.admit(key(caches), 1, r.clock.Now()); left != 0 {
		t.Errorf("a first try waits %s", left)
	}
	r.pass(waits[caches-1])
	for i := range caches {
		if left, _ := r.admit(key(i), 1, r.clock.Now()); left != 0 {
			t.Fatalf("retry %d still waits %s when its time has come", i, left)
		}
	}
}

func TestAFailureIsPassingForFourTriesAndFiveSeconds(t *testing.T) {
	r := newTrial(t)
	transient := failureOf(v1alpha1.ClassTransient, "MemberError")
	for n := 1; n <= 5; n++ {
		wait, got := r.fails(transient)
		if got.passing != (n < patience) {
			t.Errorf("try %d: passing %t", n, got.passing)
		}
		r.pass(wait)
	}
	slow := newTrial(t)
	slow.fails(transient)
	slow.pass(10 * time.Second)
	if _, got := slow.fails(transient); got.passing {
		t.Error("a member that takes ten seconds for each try is not shown to fail")
	}
	if _, got := newTrial(t).fails(failureOf(v1alpha1.ClassBlocked, "Forbidden")); got.passing {
		t.Error("what somebody has to do is not shown at once")
	}
}

func TestRetriesAreJitteredByAFifth(t *testing.T) {
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

// trying is the status that comes of a result, over and over.
func TestATryMoreChangesCountAndTimeOnly(t *testing.T) {
	mc := wasReady()
	blocked := result{failure: failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden)}
	due := shownTime(noon.Add(5 * time.Second))
	blocked.try = attempt{count: 1, at: due}
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, &blocked)
	first := *mc.Status.DeepCopy()
	if first.Attempt != 1 || !first.RetryAt.Equal(due) || first.Since == nil {
		t.Fatalf("attempt %d, retry at %v, since %v", first.Attempt, first.RetryAt, first.Since)
	}
	blocked.try = attempt{count: 2, at: shownTime(noon.Add(15 * time.Second))}
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
		t.Errorf("it is over, and the status says try %d at %v (%s)", over.Attempt, over.RetryAt, over.Class)
	}
}

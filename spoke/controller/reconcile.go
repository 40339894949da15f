package controller

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// memberDeadline bounds all requests of one reconcile to a member. A member that hangs
// occupies one of its own workers for that long, and no other member's.
const memberDeadline = 10 * time.Second

// result is the output of the stages for a snapshot.
type result struct {
	report      apply.Report
	observation *observe.Observation
	// conflicts with other controllers over children.
	conflicts conflicts
	// failure that the status shows, or nil.
	failure *failure.Failure
	// attempt is the number of the attempt, and when the next one is due.
	attempt attempt
	// remaining are the children that are still to be removed.
	remaining []apply.Target
	// unreachable: the member is disconnected. Its reconnection starts the next attempt.
	unreachable bool
	// unknown: nothing is known yet, so the status must not change. hubError is the reason,
	// if the hub failed.
	unknown  bool
	hubError error
	// requeue is when the next reconcile is due, 0 if only an event needs one.
	requeue time.Duration
}

// requeueAfter requests a reconcile after a time, unless an earlier one is due. 0 requests
// none.
func (r *result) requeueAfter(wait time.Duration) {
	if wait > 0 && (r.requeue == 0 || wait < r.requeue) {
		r.requeue = wait
	}
}

// inConflict reports whether the failure is a conflict with another controller.
func (r *result) inConflict() bool {
	return r.failure != nil && r.failure.Reason == v1alpha1.ReasonDriftFight
}

// Reconcile brings the children of one MemberCache to the desired state and reports what
// it observed. Its stages are read, decide, preflight, apply, observe, summarize, publish;
// converge holds those from decide to observe.
func (m *member) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	state := m.states.get(request.NamespacedName)
	state.mu.Lock()
	defer state.mu.Unlock()
	m.states.begin(state)

	s, err := m.read(ctx, request.NamespacedName, state)
	switch {
	case errors.Is(err, errStaleCache):
		return ctrl.Result{RequeueAfter: jittered(memberqueue.FirstRetry)}, nil
	case err == nil && s == nil, client.IgnoreNotFound(err) == nil && err != nil:
		m.states.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if wait := m.admit(s); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r := m.work(ctx, s)
	observeCorrections(m.name, r.report.Changes)
	r.report.Changes = append(state.takeUnreported(s.cache.Status.LastDrift), r.report.Changes...)
	if r.unknown {
		state.keepUnreported(r.report.Changes)
		return ctrl.Result{RequeueAfter: r.requeue}, r.hubError
	}
	countReconcile(m.name, r.failure)
	m.scheduleRetry(ctx, s, &r)
	r.settle(s)
	return m.publish(ctx, s, summarize(s, &r), &r)
}

// work reconciles the children, as far as the member is connected.
func (m *member) work(ctx context.Context, s *snapshot) result {
	s.state.arrived = time.Time{}
	switch {
	case !s.connection.Known():
		return result{unknown: true}
	case s.engaged == nil:
		return result{unreachable: true, failure: s.connection.Unreachable, report: apply.Report{Inventory: s.inventory}}
	}
	ctx, cancel := context.WithTimeout(ctx, memberDeadline)
	defer cancel()
	defer context.AfterFunc(s.engaged.Context, cancel)()

	var r result
	if s.cache.DeletionTimestamp != nil {
		r = m.delete(ctx, s)
	} else {
		r = m.converge(ctx, s)
	}
	// The end of an engagement, for example for a new credential, aborts its requests. That
	// failure is not the member's, and the next engagement starts a new reconcile.
	if s.engaged.Context.Err() != nil && r.failure != nil && r.failure.Class == v1alpha1.ClassUnreachable {
		r.unknown = true
	}
	return r
}

// converge creates, updates and corrects the children, and observes them.
func (m *member) converge(ctx context.Context, s *snapshot) result {
	d := m.decide(s)
	d = m.preflight(ctx, s, d)
	r := m.apply(ctx, s, d)
	return m.observe(ctx, s, r)
}

// admit returns how long a retry must wait, 0 if the reconcile may continue.
func (m *member) admit(s *snapshot) time.Duration {
	wait, class := m.retries.admit(&s.state.backoff, s.cache.Generation, s.now)
	if wait == 0 && class != "" {
		countRetry(m.name, class)
	}
	return wait
}

// scheduleRetry turns the failures into the time of the next attempt.
func (m *member) scheduleRetry(ctx context.Context, s *snapshot, r *result) {
	shown := r.failure
	switch {
	case r.inConflict(), r.unreachable:
		// The conflict breaker, or the member's return, starts the next attempt.
		shown = nil
	case shown == nil && len(r.remaining) > 0:
		shown = &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonChildrenTerminating}
	}
	saved := savedOutcome{Outcome: s.cache.Status.Outcome, generation: s.cache.Status.ObservedGeneration}
	wait, attempted := m.retries.next(&s.state.backoff, s.cache.Generation, shown, r.report.Failures, saved, m.clock.Now())
	r.requeueAfter(wait)
	r.requeueAfter(r.conflicts.requeue)
	switch {
	case r.inConflict():
		if len(r.conflicts.open) > 0 {
			r.attempt = attempt{count: r.conflicts.attempts, at: shownTime(r.conflicts.due)}
		}
	case r.failure != nil:
		r.attempt = attempted
	}
	logRetry(ctx, r, wait)
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// memberDeadline bounds everything that one reconcile asks of a member: a member
// that hangs costs one of its own workers that long, and nobody else anything.
const memberDeadline = 10 * time.Second

// result is what the stages made of a snapshot.
type result struct {
	report      apply.Report
	observation *observe.Observation
	// look is after how long to find out again why pods lack, 0 if none do.
	look time.Duration
	// bout is about those who keep changing children back.
	bout bout
	// failure that the status shows, or nil.
	failure *failure.Failure
	// try is how often it was met, and when the next one is due.
	try attempt
	// left are children that are still to be removed.
	left []apply.Target
	// away: the member does not answer, so its return is what is waited for.
	away bool
	// unknown: nothing can be said yet; the status stays as it is. trouble is the hub's,
	// where that is why.
	unknown bool
	trouble error
}

// Reconcile makes the member hold what one MemberCache asks for and reports what
// it found: Read, Plan and Apply, Observe, Summarize, Write.
func (m *member) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	m.waiting.end(request.NamespacedName)
	snapshot, err := m.read(ctx, request)
	if errors.Is(err, errBehind) {
		return ctrl.Result{RequeueAfter: jittered(firstReport)}, nil
	}
	if err != nil || snapshot == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := m.admit(request.NamespacedName, snapshot); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	result := m.work(ctx, snapshot)
	observeRepairs(m.name, result.report.Changes)
	if result.unknown {
		m.unreported.put(request.NamespacedName, result.report.Changes)
		return ctrl.Result{RequeueAfter: result.look}, result.trouble
	}
	countReconcile(m.name, result.failure)
	result.report.Changes = append(m.unreported.take(request.NamespacedName, snapshot.cache.Status.LastDrift), result.report.Changes...)
	next := m.next(request.NamespacedName, snapshot, &result)
	var calm time.Duration
	result.observation, calm = m.calm(snapshot, request.NamespacedName, result.observation, result.report.Changes)
	later, err := m.write(ctx, snapshot, &result)
	if err != nil {
		m.unreported.put(request.NamespacedName, result.report.Changes)
		if errors.Is(err, errBehind) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			// The hub's cache was behind; its event is on the way.
			return ctrl.Result{RequeueAfter: jittered(firstReport)}, nil
		}
		return ctrl.Result{}, fmt.Errorf("report %s to the hub: %w", request.NamespacedName, err)
	}
	lacking := !result.away && m.recent.Pending(request.Namespace, result.report.Inventory)
	lag := m.lags.look(request.NamespacedName, lacking, m.Clock.Now())
	return sooner(sooner(sooner(sooner(next, later), calm), result.look), lag), nil
}

// sooner asks for the next try after a time, unless it comes before that anyway. 0
// asks for nothing.
func sooner(next ctrl.Result, after time.Duration) ctrl.Result {
	if after > 0 && (next.RequeueAfter == 0 || after < next.RequeueAfter) {
		next.RequeueAfter = after
	}
	return next
}

// work does what there is to do in the member, as far as it is connected.
func (m *member) work(ctx context.Context, s *snapshot) result {
	switch {
	case s.engaged == nil && s.away == nil:
		return result{unknown: true}
	case s.engaged == nil:
		return result{away: true, failure: s.away, report: apply.Report{Inventory: s.inventory}}
	}
	ctx, cancel := context.WithTimeout(ctx, memberDeadline)
	defer cancel()
	defer context.AfterFunc(s.engaged.context, cancel)()

	r := m.converge(ctx, s)
	// Whoever ends an engagement, such as for a new credential, cuts off what is under
	// way. That says nothing about the member, and all is asked for again.
	r.unknown = r.unknown || s.engaged.context.Err() != nil && r.failure != nil && r.failure.Class == v1alpha1.ClassUnreachable
	return r
}

// converge plans, applies and observes, or removes.
func (m *member) converge(ctx context.Context, s *snapshot) result {
	applier := m.applier(s)
	if s.cache.DeletionTimestamp == nil {
		return m.hold(ctx, s, applier)
	}
	// Pods that have no StatefulSet for a moment must get it back first: nobody else
	// would ever remove them.
	if target, recreating := applier.Owner.Recreating(); recreating {
		r := m.hold(ctx, s, applier)
		if r.failure == nil || r.failure.Class == v1alpha1.ClassTransient || r.failure.Class == v1alpha1.ClassUnreachable {
			r.left = []apply.Target{target}
			return r
		}
	}
	return m.remove(ctx, s, applier)
}

// hold makes the member hold the children.
func (m *member) hold(ctx context.Context, s *snapshot, applier *apply.Applier) result {
	desired, problems, err := m.memo.desire(m.Typer, s.cache, s.now)
	if err != nil {
		return result{failure: failure.Of(err, "render", s.cache.Name), report: apply.Report{Inventory: s.inventory}}
	}
	if len(problems) > 0 {
		r := result{failure: invalid(problems), report: apply.Report{Inventory: s.inventory}}
		r.observation, r.look = m.observe(ctx, s)
		return r
	}
	plan := apply.Decide(desired, s.live, applier.Owner, m.recent)
	if len(plan.Prune) > 0 {
		if err := m.confirm(ctx, s.cache); err != nil {
			return unconfirmed(err)
		}
	}
	report := applier.Apply(ctx, plan)
	r := result{report: report, failure: report.PrimaryFailure()}
	r.bout = m.fights.settle(client.ObjectKeyFromObject(s.cache), &report, m.Clock.Now())
	if r.failure == nil {
		r.failure = r.bout.failure()
	}
	r.observation, r.look = m.observe(ctx, s)
	r.observation = leftDeleted(r.observation, &report)
	return r
}

// leftDeleted is what is observed, unless there is no StatefulSet and by policy none is to
// be made: nothing is on its way then.
func leftDeleted(is *observe.Observation, report *apply.Report) *observe.Observation {
	gone := func(o apply.RemainingDrift) bool {
		return o.Deleted && !o.Refused && o.Key.Kind == render.StatefulSetKind
	}
	at := slices.IndexFunc(report.Remaining, gone)
	if at < 0 || is == nil {
		return is
	}
	return &observe.Observation{State: v1alpha1.MemberBlocked, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonDriftReported,
		Message: report.Remaining[at].Key.String() + " was deleted, and drift.policy: Report leaves it so",
		Hint:    "set spec.drift.policy to Correct, and it is made anew"}}
}

// unconfirmed is the result where the hub did not say that the MemberCache is what
// its cache shows. The event of a newer one is on the way; trouble with the hub
// itself is tried again more slowly each time.
func unconfirmed(err error) result {
	if errors.Is(err, errBehind) {
		return result{unknown: true, look: jittered(firstReport)}
	}
	return result{unknown: true, trouble: err}
}

// remove deletes or releases the children that the API server itself shows: the
// cache may not have yet what was applied just before the deletion, and nobody looks
// for a child again once its MemberCache is gone.
func (m *member) remove(ctx context.Context, s *snapshot, applier *apply.Applier) result {
	r := result{report: apply.Report{Inventory: s.inventory}}
	if err := m.confirm(ctx, s.cache); err != nil {
		return unconfirmed(err)
	}
	live, err := m.children(ctx, s.engaged.cluster.GetAPIReader(), s.cache, carried(s.cache)...)
	if err != nil {
		r.failure = failure.Of(err, "list", "the children")
		return r
	}
	end := applier.Remove
	if s.cache.Spec.Policies.Orphan() {
		end = applier.Release
	}
	r.left, r.report.Failures = end(ctx, apply.Targets(live, applier.Owner))
	r.failure = r.report.PrimaryFailure()
	return r
}

func (m *member) applier(s *snapshot) *apply.Applier {
	policy, _ := drift.NewPolicy(&s.cache.Spec.Policies)
	policy.Scalers = s.scalers
	owner := s.owner()
	owner.DriftPolicy, owner.Typer, owner.IntentChanged = policy, m.Typer, s.cache.Status.Revision != s.cache.Spec.Revision
	return &apply.Applier{
		Defer: func(step *apply.Step) bool {
			drifted := func() v1alpha1.DriftFinding { return describeStep(step) }
			return m.fights.hold(client.ObjectKeyFromObject(s.cache), step.Key(), drifted, m.Clock.Now())
		},
		Client: s.engaged.cluster.GetClient(), Reader: s.engaged.cluster.GetAPIReader(), Writes: m.recent,
		Namespace: s.cache.Namespace, CreateNamespace: s.cache.Spec.CreateNamespace,
		Owner: owner, Now: m.Clock.Now, Since: s.arrived,
	}
}

// owner knows the children of a MemberCache.
func (s *snapshot) owner() apply.Owner {
	return apply.Owner{Mark: render.OwnerMark(s.cache), Inventory: s.inventory, Policies: s.cache.Spec.Policies}
}

// observe reads the StatefulSet as it is after applying. One of another owner tells
// nothing of this cache.
func (m *member) observe(ctx context.Context, s *snapshot) (seen *observe.Observation, look time.Duration) {
	key := apply.Key{Kind: render.StatefulSetKind, Name: s.cache.Spec.CacheCluster}
	live := m.recent.Latest(key, s.cache.Namespace, s.live[key])
	set, _ := live.(*appsv1.StatefulSet)
	if set != nil && !s.owner().Owns(set) {
		set = nil
	}
	is := observe.Observe(set, s.pods)
	look = m.explainLack(ctx, s, set, &is)
	return &is, look
}

func invalid(problems []render.Problem) *failure.Failure {
	message := ""
	for i, p := range problems {
		if i > 0 {
			message += "; "
		}
		message += "spec." + p.String()
	}
	return &failure.Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec, Message: message,
		Hint: "correct the field in the CacheCluster; nothing was changed in the member"}
}

// admit says how long a retry waits yet, 0 if the work may begin.
func (m *member) admit(key types.NamespacedName, s *snapshot) time.Duration {
	wait, class := m.retries.admit(key, s.cache.Generation, s.now)
	if wait > 0 {
		if s.arrived.Before(s.now) {
			m.arrivals.note(key, s.arrived)
		}
		return wait
	}
	if class != "" {
		countRetry(m.name, class)
	}
	return 0
}

// next turns the failures into the time of the next try.
func (m *member) next(key types.NamespacedName, s *snapshot, r *result) ctrl.Result {
	shown := r.failure
	switch {
	case r.fought():
		// The fight breaker says when.
		shown = nil
	case r.away:
		// Its return is what is waited for.
		shown = nil
	case shown == nil && len(r.left) > 0:
		shown = &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonChildrenTerminating}
	}
	saved := savedOutcome{Outcome: s.cache.Status.Outcome, generation: s.cache.Status.ObservedGeneration}
	wait, try := m.retries.next(key, s.cache.Generation, shown, r.report.Failures, saved, m.Clock.Now())
	if r.failure != nil {
		r.try = try
	}
	if r.fought() {
		r.try = attempt{}
		if len(r.bout.open) > 0 {
			r.try = attempt{count: r.bout.tries, at: shownTime(r.bout.due)}
		}
	}
	return sooner(ctrl.Result{RequeueAfter: wait}, r.bout.wait)
}

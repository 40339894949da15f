package controller

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
)

// summarize returns the status after a reconcile. It is pure, and returns the old status
// if nothing in it has changed.
func summarize(s *snapshot, r *result) v1alpha1.MemberCacheStatus {
	old := &s.cache.Status
	status := old.DeepCopy()
	status.Inventory = sorted(r.report.Inventory)
	status.LastDrift = latestDrift(old.LastDrift, r.report.Changes)
	status.OpenDrifts = openDrifts(old.OpenDrifts, s, r)
	// While a failure may pass, state and counts both stay: a StatefulSet that could not be
	// read would be reported as a ready cache without pods.
	if !r.attempt.passing {
		if r.observation != nil {
			status.Replicas, status.ReadyReplicas = r.observation.Replicas, r.observation.ReadyReplicas
		}
		setOutcome(status, s, r)
	}
	setDrifted(status, s, r)
	if equality.Semantic.DeepEqual(old, status) {
		return *old
	}
	if r.observed() && !onlyRetried(old, status) {
		observed := metav1.NewTime(s.now)
		status.ObservedAt = &observed
	}
	return *status
}

// observed reports whether the member answered.
func (r *result) observed() bool {
	return !r.unreachable && (r.failure == nil || r.failure.Class != v1alpha1.ClassUnreachable)
}

// onlyRetried reports whether nothing changed but the number of attempts.
func onlyRetried(old, next *v1alpha1.MemberCacheStatus) bool {
	same := next.DeepCopy()
	same.Attempt, same.RetryAt = old.Attempt, old.RetryAt
	return equality.Semantic.DeepEqual(old, same)
}

// setOutcome sets state, outcome and conditions.
func setOutcome(status *v1alpha1.MemberCacheStatus, s *snapshot, r *result) {
	state, applied, outcome := outcomeOf(s, r)
	if s.cache.DeletionTimestamp != nil {
		state = v1alpha1.MemberDeleting
	}
	since := status.Since
	if since == nil || status.State != state || status.Reason != outcome.Reason {
		since = &metav1.Time{Time: s.now}
		if r.unreachable && s.connection.Since != nil {
			since = s.connection.Since
		}
	}
	status.State, status.Outcome = state, outcome
	status.Since = since
	if r.failure != nil {
		status.Attempt, status.RetryAt = r.attempt.count, r.attempt.at
	}
	if r.observed() {
		status.ObservedGeneration = s.cache.Generation
	}
	differs, difference := appliedDrift(status, r)
	if applied == metav1.ConditionTrue || differs != "" || r.inConflict() {
		status.Revision = s.cache.Spec.Revision
	}
	text := messageWithHint(&outcome)
	set := conditionsOf(status, s)
	switch {
	case differs != "":
		set.False(v1alpha1.ConditionApplied, differs, difference)
	case applied == metav1.ConditionTrue:
		set.True(v1alpha1.ConditionApplied, v1alpha1.ReasonApplied, "all children match the spec")
	default:
		set.Set(v1alpha1.ConditionApplied, applied, outcome.Reason, text)
	}
	set.Set(v1alpha1.ConditionReady, readiness(state), outcome.Reason, text)
	set.TrueOrAbsent(v1alpha1.ConditionReconciling, state == v1alpha1.MemberProgressing || state == v1alpha1.MemberDeleting, outcome.Reason, text)
	set.TrueOrAbsent(v1alpha1.ConditionStalled, state == v1alpha1.MemberBlocked, outcome.Reason, text)
}

// outcomeOf merges failure and observation.
func outcomeOf(s *snapshot, r *result) (v1alpha1.MemberState, metav1.ConditionStatus, v1alpha1.Outcome) {
	switch {
	case r.failure != nil && r.failure.Class == v1alpha1.ClassUnreachable:
		return v1alpha1.MemberUnreachable, metav1.ConditionUnknown, r.failure.Outcome()
	case r.failure != nil && (r.failure.Class == v1alpha1.ClassInvalid || r.failure.Class == v1alpha1.ClassBlocked || r.inConflict()):
		return v1alpha1.MemberBlocked, metav1.ConditionFalse, r.failure.Outcome()
	case r.failure != nil:
		return v1alpha1.MemberProgressing, metav1.ConditionFalse, r.failure.Outcome()
	case s.cache.DeletionTimestamp != nil:
		return v1alpha1.MemberDeleting, metav1.ConditionFalse, removing(r.remaining)
	case r.observation == nil:
		return v1alpha1.MemberProgressing, metav1.ConditionUnknown, v1alpha1.Outcome{Reason: v1alpha1.ReasonPending}
	default:
		return r.observation.State, metav1.ConditionTrue, r.observation.Outcome
	}
}

// removing names the children that are being removed, in their order.
func removing(remaining []apply.Target) v1alpha1.Outcome {
	var pods, rest []string
	for _, target := range remaining {
		if target.Key.Kind == children.StatefulSetKind {
			pods = append(pods, target.Key.String())
		} else {
			rest = append(rest, target.Key.String())
		}
	}
	message := "removing " + strings.Join(rest, ", ")
	if len(pods) > 0 {
		message = "removing " + strings.Join(pods, ", ") + " and its pods"
		if len(rest) > 0 {
			message += ", then " + strings.Join(rest, ", ")
		}
	}
	return v1alpha1.Outcome{Reason: v1alpha1.ReasonChildrenTerminating, Message: message}
}

func readiness(state v1alpha1.MemberState) metav1.ConditionStatus {
	switch state {
	case v1alpha1.MemberReady:
		return metav1.ConditionTrue
	case v1alpha1.MemberUnreachable:
		return metav1.ConditionUnknown
	default:
		return metav1.ConditionFalse
	}
}

func conditionsOf(status *v1alpha1.MemberCacheStatus, s *snapshot) conditions.Setter {
	return conditions.New(&status.Conditions, status.ObservedGeneration, s.now)
}

func sorted(inventory []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	out := slices.Clone(inventory)
	slices.SortFunc(out, func(a, b v1alpha1.InventoryEntry) int {
		return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name)
	})
	return out
}

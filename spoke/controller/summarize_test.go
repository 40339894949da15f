package controller

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

var (
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	earlier = metav1.NewTime(noon.Add(-time.Hour))
	readyIs = &observe.Observation{State: v1alpha1.MemberReady, Replicas: 2, ReadyReplicas: 2, Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsReady}}
)

// wasReady is a MemberCache of generation 3 whose last report, about 2, was ready.
func wasReady() *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions.a", Generation: 3},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "a", Revision: "new"},
		Status: v1alpha1.MemberCacheStatus{ObservedGeneration: 2, State: v1alpha1.MemberReady, Revision: "old", Replicas: 2, ReadyReplicas: 2,
			Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsReady, Since: &earlier}, ObservedAt: &earlier},
	}
}

func failureOf(class v1alpha1.ErrorClass, reason string) *failure.Failure {
	return &failure.Failure{Class: class, Reason: reason, Message: "message", Hint: "hint"}
}

func TestSummarize_ReportsResult(t *testing.T) {
	for _, c := range []struct {
		name, why        string
		result           result
		attempts         int
		deleting         bool
		state            v1alpha1.MemberState
		reason, revision string
		observed         int64
		ready, applied   string
	}{
		{name: "applied and ready", result: result{observation: readyIs}, state: v1alpha1.MemberReady, reason: v1alpha1.ReasonPodsReady,
			revision: "new", observed: 3, ready: "True PodsReady", applied: "True Applied"},
		{name: "blocked", why: "the pods of the old revision may be ready, but the desired children do not exist",
			result: result{observation: readyIs, failure: failureOf(v1alpha1.ClassBlocked, v1alpha1.ReasonForbidden)},
			state:  v1alpha1.MemberBlocked, reason: v1alpha1.ReasonForbidden, revision: "old", observed: 3, ready: "False Forbidden", applied: "False Forbidden"},
		{name: "invalid", result: result{failure: failureOf(v1alpha1.ClassInvalid, v1alpha1.ReasonInvalidSpec)},
			state: v1alpha1.MemberBlocked, reason: v1alpha1.ReasonInvalidSpec, revision: "old", observed: 3, ready: "False InvalidSpec", applied: "False InvalidSpec"},
		{name: "unreachable", why: "nothing was observed, so no generation was", result: result{unreachable: true, failure: failureOf(v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)},
			state: v1alpha1.MemberUnreachable, reason: v1alpha1.ReasonMemberUnreachable, revision: "old", observed: 2, ready: "Unknown MemberUnreachable", applied: "Unknown MemberUnreachable"},
		{name: "a transient failure", why: "it usually passes before anyone has read it", result: result{failure: failureOf(v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)},
			attempts: 1, state: v1alpha1.MemberReady, reason: v1alpha1.ReasonPodsReady, revision: "old", observed: 2},
		{name: "a transient failure that lasts", result: result{failure: failureOf(v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)},
			attempts: passingAttempts, state: v1alpha1.MemberProgressing, reason: v1alpha1.ReasonMemberError, revision: "old", observed: 3, ready: "False MemberError", applied: "False MemberError"},
		{name: "children that are removed", deleting: true, result: result{remaining: []apply.Target{{Key: apply.Key{Kind: children.ServiceKind, Name: "sessions"}}}},
			state: v1alpha1.MemberDeleting, reason: v1alpha1.ReasonChildrenTerminating, revision: "old", observed: 3, ready: "False ChildrenTerminating", applied: "False ChildrenTerminating"},
		{name: "children of an unreachable member", deleting: true, result: result{unreachable: true, failure: failureOf(v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)},
			state: v1alpha1.MemberDeleting, reason: v1alpha1.ReasonMemberUnreachable, revision: "old", observed: 2, ready: "False MemberUnreachable", applied: "Unknown MemberUnreachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mc := wasReady()
			if c.deleting {
				mc.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			before := mc.DeepCopy()
			s := &snapshot{now: noon, cache: mc}
			c.result.attempt = attempt{count: int32(c.attempts), passing: c.attempts > 0 && c.attempts < passingAttempts}
			got := summarize(s, &c.result)
			if got.State != c.state || got.Reason != c.reason || got.Revision != c.revision || got.ObservedGeneration != c.observed {
				t.Errorf("%s: %s (%s), revision %s, generation %d; want %s (%s), %s, %d", c.why, got.State, got.Reason, got.Revision, got.ObservedGeneration, c.state, c.reason, c.revision, c.observed)
			}
			for kind, want := range map[string]string{v1alpha1.ConditionReady: c.ready, v1alpha1.ConditionApplied: c.applied} {
				text := ""
				if is := meta.FindStatusCondition(got.Conditions, kind); is != nil {
					text = string(is.Status) + " " + is.Reason
				}
				if text != want {
					t.Errorf("%s: %s is %q, want %q", c.why, kind, text, want)
				}
			}
			if stalled := meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionStalled); stalled != (c.state == v1alpha1.MemberBlocked) {
				t.Errorf("stalled: %t", stalled)
			}
			if c.result.unreachable && !got.ObservedAt.Equal(&earlier) {
				t.Errorf("observed at %s, without an answer of the member", got.ObservedAt)
			}
			if diff := cmp.Diff(before, mc); diff != "" {
				t.Errorf("the MemberCache was changed:\n%s", diff)
			}
			// The next reconcile of the same state returns the same status.
			mc.Status = got
			if diff := cmp.Diff(got, summarize(&snapshot{now: noon.Add(time.Minute), cache: mc}, &c.result)); diff != "" {
				t.Errorf("a minute later:\n%s", diff)
			}
		})
	}
}

// A StatefulSet that lost its label is absent in the cache. If the live read fails too,
// nothing is known of its pods.
func TestSummarize_KeepsCountsWhileFailureMayPass(t *testing.T) {
	mc := wasReady()
	failed := &result{observation: &observe.Observation{State: v1alpha1.MemberProgressing},
		failure: failureOf(v1alpha1.ClassTransient, v1alpha1.ReasonMemberError), attempt: attempt{count: 1, passing: true}}
	status := summarize(&snapshot{now: noon, cache: mc}, failed)
	if diff := cmp.Diff(mc.Status, status); diff != "" {
		t.Errorf("the status changed (-before +after):\n%s", diff)
	}
	failed.attempt.passing = false
	if status = summarize(&snapshot{now: noon, cache: mc}, failed); status.State == v1alpha1.MemberReady || status.ReadyReplicas != 0 {
		t.Errorf("a failure that lasts leaves %s with %d ready", status.State, status.ReadyReplicas)
	}
}

// A new MemberCache is reported when its first attempt succeeded, or failed for long: a
// report in between would be four writes to the hub. Its inventory is reported at once.
func TestSummarize_DoesNotReportFirstFailureThatMayPass(t *testing.T) {
	mc := wasReady()
	mc.Status = v1alpha1.MemberCacheStatus{}
	inventory := []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions", UID: "1"}}
	failed := &result{failure: failureOf(v1alpha1.ClassTransient, v1alpha1.ReasonMemberError), attempt: attempt{count: 1, passing: true}}
	if status := summarize(&snapshot{now: noon, cache: mc}, failed); status.State != "" || len(status.Conditions) != 0 || status.ObservedAt != nil {
		t.Errorf("reported: %+v", status)
	}
	failed.report.Inventory = inventory
	if status := summarize(&snapshot{now: noon, cache: mc}, failed); len(status.Inventory) != 1 || status.State != "" {
		t.Errorf("state %q with %v in the inventory", status.State, status.Inventory)
	}
	failed.attempt.passing = false
	if status := summarize(&snapshot{now: noon, cache: mc}, failed); status.State != v1alpha1.MemberProgressing || status.Reason != v1alpha1.ReasonMemberError {
		t.Errorf("a failure that lasts is reported as %s (%s)", status.State, status.Reason)
	}
}

// A request that times out while the member still counts as connected observed nothing.
func TestSummarize_DoesNotObserveMemberWithoutAnswer(t *testing.T) {
	got := summarize(&snapshot{now: noon, cache: wasReady()}, &result{failure: failureOf(v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable), attempt: attempt{count: passingAttempts}})
	if got.State != v1alpha1.MemberUnreachable || !got.ObservedAt.Equal(&earlier) || got.ObservedGeneration != 2 {
		t.Errorf("%s, observed at %s, generation %d; want %s, %s, 2", got.State, got.ObservedAt, got.ObservedGeneration, v1alpha1.MemberUnreachable, earlier)
	}
}

func TestUnverified_RetriesErrorWithBackoffAndStaleCacheAtOnce(t *testing.T) {
	if r := unverified(errStaleCache); !r.unknown || r.hubError != nil || r.requeue <= 0 || r.requeue > 2*memberqueue.FirstRetry {
		t.Errorf("a stale cache: %+v", r)
	}
	if r := unverified(fmt.Errorf("verify: %w", io.ErrUnexpectedEOF)); !r.unknown || r.hubError == nil || r.requeue != 0 {
		t.Errorf("an error: %+v, want an error, which the queue counts", r)
	}
}

func TestSummarize_SinceIsTimeOfDisconnection(t *testing.T) {
	lost := metav1.NewTime(noon.Add(-time.Minute))
	s := &snapshot{now: noon, cache: wasReady(), connection: memberqueue.Connection{Since: &lost}}
	got := summarize(s, &result{unreachable: true, failure: failureOf(v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)})
	if !got.Since.Equal(&lost) {
		t.Errorf("since %s, want %s", got.Since, lost)
	}
}

func TestSummarize_CountsCorrectionsAndShowsLast(t *testing.T) {
	service := apply.Key{Kind: children.ServiceKind, Name: "sessions"}
	set := apply.Key{Kind: children.StatefulSetKind, Name: "sessions"}
	r := result{observation: readyIs, report: apply.Report{Changes: []apply.Change{
		{Key: set, Action: apply.Update},
		{Key: set, Action: apply.Correct, Drift: drift.Finding{}, DoneAt: noon, Took: 38 * time.Millisecond},
		{Key: service, Action: apply.Create, Deleted: true, DoneAt: noon.Add(time.Second), Took: 41234567 * time.Nanosecond},
		{Key: service, Action: apply.Prune},
	}}}
	mc := wasReady()
	mc.Status.LastDrift = &v1alpha1.Drift{Count: 5}
	got := summarize(&snapshot{now: noon, cache: mc}, &r).LastDrift
	want := &v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: "Service/sessions", Deleted: true, Manager: drift.Unknown}, At: metav1.NewMicroTime(noon.Add(time.Second)),
		RepairedIn: metav1.Duration{Duration: 41200 * time.Microsecond}, Count: 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("last drift (-want +got):\n%s", diff)
	}
	if mc.Status.LastDrift.Count != 5 {
		t.Error("the old status was changed")
	}
}

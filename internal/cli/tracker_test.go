package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// sampleCache returns a CacheCluster of generation 1 with the given members, Ready if
// all of them are.
func sampleCache(members ...v1alpha1.ClusterStatus) *v1alpha1.CacheCluster {
	cc := &v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cache-cluster", UID: "u1", Generation: 1}}
	cc.Status.ObservedGeneration = 1
	cc.Status.Revision = "r1"
	cc.Status.Clusters = members
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllMembersReady, ObservedGeneration: 1}
	for _, m := range members {
		if m.State != v1alpha1.MemberReady {
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady, "not all members are ready"
		}
	}
	cc.Status.Conditions = []metav1.Condition{ready}
	return cc
}

func member(name string, state v1alpha1.MemberState, ready int32, reason string) v1alpha1.ClusterStatus {
	return v1alpha1.ClusterStatus{Name: name, State: state, Replicas: 3, ReadyReplicas: ready, Revision: "r1", Outcome: v1alpha1.Outcome{Reason: reason}}
}

// drifted returns a ready member-1 with the given number of corrected drifts.
func drifted(count int64, at time.Time) v1alpha1.ClusterStatus {
	m := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
	m.LastDrift = &v1alpha1.Drift{
		DriftFinding: v1alpha1.DriftFinding{Object: "StatefulSet/cache-cluster", Fields: []string{"spec.replicas"}, Manager: "kubectl-edit", ChangedAt: &metav1.Time{Time: at}},
		At:           metav1.NewMicroTime(at), RepairedIn: metav1.Duration{Duration: 38 * time.Millisecond}, Count: count,
	}
	return m
}

const driftAtNoon = "drift detected and corrected in 38ms  member-1 StatefulSet/cache-cluster spec.replicas (was changed by kubectl-edit at 12:00:00)"

func TestTracker_ReportsChanges(t *testing.T) {
	ready := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
	blocked := member("member-2", v1alpha1.MemberBlocked, 0, "QuotaExceeded")
	blocked.Message, blocked.Hint = "quota\x1b[2J is full", "raise it"
	again := sampleCache(ready)
	again.UID = "u2"

	for _, tc := range []struct {
		reason   string
		versions []*v1alpha1.CacheCluster
		want     []string // events of the last version
	}{
		{"the first version: the present state and the last drift", []*v1alpha1.CacheCluster{sampleCache(drifted(7, noon))},
			[]string{"cache-cluster: Ready", "cache-cluster member-1: Ready 3/3", driftAtNoon}},
		{"no change", []*v1alpha1.CacheCluster{sampleCache(drifted(7, noon)), sampleCache(drifted(7, noon))}, nil},
		{"a change of a member and of the cache",
			[]*v1alpha1.CacheCluster{sampleCache(ready), sampleCache(member("member-1", v1alpha1.MemberProgressing, 1, "PodsStarting"))},
			[]string{"cache-cluster: NotReady MembersNotReady", "cache-cluster member-1: Progressing 1/3 PodsStarting"}},
		{"message and hint of a blocked member, without control characters",
			[]*v1alpha1.CacheCluster{sampleCache(ready), sampleCache(ready, blocked)},
			[]string{"cache-cluster: NotReady MembersNotReady", "cache-cluster member-2: Blocked 0/3 QuotaExceeded: quota [2J is full\n  hint: raise it"}},
		{"a removed member", []*v1alpha1.CacheCluster{sampleCache(ready, blocked), sampleCache(ready)},
			[]string{"cache-cluster: Ready", "cache-cluster member-2: Removed"}},
		{"a first drift", []*v1alpha1.CacheCluster{sampleCache(ready), sampleCache(drifted(1, noon))}, []string{driftAtNoon}},
		{"the next drift", []*v1alpha1.CacheCluster{sampleCache(drifted(1, noon)), sampleCache(drifted(2, noon))}, []string{driftAtNoon}},
		{"drifts that were replaced before they were observed",
			[]*v1alpha1.CacheCluster{sampleCache(drifted(1, noon)), sampleCache(drifted(4, noon))}, []string{driftAtNoon + " (+2 more)"}},
		{"drifts before the first observed one", []*v1alpha1.CacheCluster{sampleCache(ready), sampleCache(drifted(3, noon))}, []string{driftAtNoon + " (+2 more)"}},
		{"a restarted count is a new drift",
			[]*v1alpha1.CacheCluster{sampleCache(drifted(5, noon.Add(-time.Hour))), sampleCache(drifted(1, noon))}, []string{driftAtNoon}},
		{"a drift is not reported again after its member was absent",
			[]*v1alpha1.CacheCluster{sampleCache(drifted(5, noon)), sampleCache(), sampleCache(drifted(5, noon))},
			[]string{"cache-cluster member-1: Ready 3/3"}},
		{"a recreated object with the same name", []*v1alpha1.CacheCluster{sampleCache(ready), again},
			[]string{"cache-cluster: Ready", "cache-cluster member-1: Ready 3/3"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tr := newTracker(func() time.Time { return noon }, false)
			var got []event
			for _, cc := range tc.versions {
				got = tr.update(cc)
			}
			var lines []string
			for _, h := range got {
				lines = append(lines, h.line)
			}
			if strings.Join(lines, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestTracker_ForgetsDeletedCache(t *testing.T) {
	tr := newTracker(func() time.Time { return noon }, true)
	cc := sampleCache(drifted(1, noon))
	tr.update(cc)
	if got := tr.remove(cc); len(got) != 1 || got[0].line != "default/cache-cluster: deleted" {
		t.Errorf("got %v", got)
	}
	if got := tr.update(cc); len(got) != 3 {
		t.Errorf("%d events after the deletion, want 3", len(got))
	}
	if len(tr.caches) != 1 || tr.caches[types.NamespacedName{Namespace: "default", Name: "cache-cluster"}] == nil {
		t.Errorf("remembers %v", tr.caches)
	}
}

func TestCorrectedDriftLine_NamesFieldsAndManager(t *testing.T) {
	for _, tc := range []struct {
		reason string
		drift  v1alpha1.Drift
		want   string
	}{
		{"all fields", v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: "StatefulSet/a", Fields: []string{"x", "y"}, Manager: "kubectl-edit", ChangedAt: &metav1.Time{Time: noon.Add(-time.Minute)}}, RepairedIn: metav1.Duration{Duration: 1499 * time.Microsecond}},
			"drift detected and corrected in 1ms  member-2 StatefulSet/a x, y (was changed by kubectl-edit at 11:59:00)"},
		{"a deletion has no manager", v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: "Service/a", Deleted: true, Manager: "unknown"}, RepairedIn: metav1.Duration{Duration: 412 * time.Microsecond}},
			"drift detected and corrected in 412µs  member-2 Service/a (was deleted; corrected at 12:00:00)"},
		{"a long duration in seconds", v1alpha1.Drift{DriftFinding: v1alpha1.DriftFinding{Object: "Service/a", Deleted: true}, RepairedIn: metav1.Duration{Duration: 95 * time.Second}},
			"drift detected and corrected in 1m35s  member-2 Service/a (was deleted; corrected at 12:00:00)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.drift.At = metav1.NewMicroTime(noon)
			if got := correctedDriftLine("member-2", tc.drift.Object, &tc.drift, noon); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	d := v1alpha1.Drift{At: metav1.NewMicroTime(noon.Add(-24 * time.Hour)), DriftFinding: v1alpha1.DriftFinding{Object: "Service/a", Deleted: true}}
	if got := correctedDriftLine("m", d.Object, &d, noon); !strings.Contains(got, "2026-05-03 12:00:00") {
		t.Errorf("the drift of the day before lacks its date: %s", got)
	}
}

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestReadinessOf_IgnoresOlderGenerations(t *testing.T) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	for _, tc := range []struct {
		reason     string
		observed   int64
		conditions []metav1.Condition
		want       readiness
	}{
		{"nothing observed", 0, nil, readinessProgressing},
		{"ready", 2, []metav1.Condition{ready}, readinessReady},
		{"ready in an older generation", 1, []metav1.Condition{ready}, readinessProgressing},
		{"a condition of an older generation in a present status", 2, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}, readinessProgressing},
		{"an unknown condition is not ready", 2, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: 2}}, readinessProgressing},
		{"stalled", 2, []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 2}}, readinessStalled},
		{"ready in a newer generation", 3, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3}}, readinessReady},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cc := &v1alpha1.CacheCluster{}
			cc.Status.ObservedGeneration, cc.Status.Conditions = tc.observed, tc.conditions
			if got := readinessOf(cc, 2); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestReadinessOf_StalledOnlyUntilObstacleClears(t *testing.T) {
	blocked := func(name, reason, hint string) v1alpha1.ClusterStatus {
		m := member(name, v1alpha1.MemberBlocked, 3, reason)
		m.Hint = hint
		return m
	}
	selfResolving := func(m v1alpha1.ClusterStatus) v1alpha1.ClusterStatus {
		m.SelfResolving = true
		return m
	}
	conflict := selfResolving(blocked("a", v1alpha1.ReasonDriftFight, "stop the other controller"))
	for _, tc := range []struct {
		reason  string
		members []v1alpha1.ClusterStatus
		placed  metav1.ConditionStatus
		want    readiness
	}{
		{"a conflict with another controller clears by itself", []v1alpha1.ClusterStatus{conflict}, metav1.ConditionTrue, readinessProgressing},
		{"a conflict, and pods that crash", []v1alpha1.ClusterStatus{conflict, member("b", v1alpha1.MemberDegraded, 1, v1alpha1.ReasonPodsCrashing)}, metav1.ConditionTrue, readinessProgressing},
		{"a conflict, and a quota that stays exceeded", []v1alpha1.ClusterStatus{conflict, blocked("b", v1alpha1.ReasonQuotaExceeded, "raise it")}, metav1.ConditionTrue, readinessStalled},
		{"a conflict, and an invalid placement", []v1alpha1.ClusterStatus{conflict}, metav1.ConditionFalse, readinessStalled},
		{"a namespace in deletion", []v1alpha1.ClusterStatus{selfResolving(blocked("a", v1alpha1.ReasonNamespaceTerminating, ""))}, metav1.ConditionTrue, readinessProgressing},
		{"a MemberCache of an earlier cache of this name", []v1alpha1.ClusterStatus{selfResolving(blocked("a", v1alpha1.ReasonNameConflict, ""))}, metav1.ConditionTrue, readinessProgressing},
		{"another owner's object in deletion", []v1alpha1.ClusterStatus{selfResolving(blocked("a", v1alpha1.ReasonObjectOfAnother, "wait until the object is deleted"))}, metav1.ConditionTrue, readinessProgressing},
		{"a hint does not decide", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonObjectOfAnother, "wait until it is gone")}, metav1.ConditionTrue, readinessStalled},
		{"another owner's object", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonObjectOfAnother, "rename the CacheCluster")}, metav1.ConditionTrue, readinessStalled},
		{"an immutable field", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonImmutableField, "")}, metav1.ConditionTrue, readinessStalled},
		{"an invalid spec", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonInvalidSpec, "")}, metav1.ConditionTrue, readinessStalled},
		{"no member", nil, metav1.ConditionTrue, readinessStalled},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cc := sampleCache(tc.members...)
			cc.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionPlaced, Status: tc.placed, ObservedGeneration: 1},
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1},
			}
			if got := readinessOf(cc, 1); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestCompleteChange_ClaimsOnlyReportedMembers(t *testing.T) {
	with := func(name string, state v1alpha1.MemberState, class v1alpha1.ErrorClass, reason string) v1alpha1.ClusterStatus {
		m := member(name, state, 3, reason)
		m.Class = class
		return m
	}
	ready := with("a", v1alpha1.MemberReady, "", v1alpha1.ReasonPodsReady)
	overridden := ready
	overridden.Revision = "r1-with-its-override"
	rolling := with("b", v1alpha1.MemberProgressing, "", v1alpha1.ReasonRollingOut)
	pending := with("b", v1alpha1.MemberProgressing, "", v1alpha1.ReasonPending)
	retried := with("b", v1alpha1.MemberProgressing, v1alpha1.ClassTransient, v1alpha1.ReasonMemberError)
	unreachable := with("b", v1alpha1.MemberUnreachable, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)
	leaving := with("b", v1alpha1.MemberDeleting, "", v1alpha1.ReasonChildrenTerminating)
	invalid := with("b", v1alpha1.MemberBlocked, v1alpha1.ClassInvalid, v1alpha1.ReasonInvalidSpec)
	rejected := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassInvalid, v1alpha1.ReasonRejected)
	immutable := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonImmutableField)
	conflict := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassConflict, v1alpha1.ReasonDriftFight)
	remaining := conflict
	remaining.OpenDrifts = []v1alpha1.DriftFinding{{Object: "StatefulSet/cache-cluster", Fields: []string{"spec.replicas"}}}

	const part, none = "updated CacheCluster on the hub, not yet fully applied in any member", "updated CacheCluster on the hub, not applied in any member"
	for _, tc := range []struct {
		reason  string
		members []v1alpha1.ClusterStatus
		want    string
	}{
		{"an invalid spec changes nothing, though the revision is the same", []v1alpha1.ClusterStatus{invalid}, none},
		{"no member is placed", nil, none},
		{"a member in deletion does not count", []v1alpha1.ClusterStatus{invalid, leaving}, none},
		{"one of two members is invalid", []v1alpha1.ClusterStatus{ready, invalid}, "updated stateful workload (fully applied in 1 of 2 members)"},
		{"a rejected child; other children may be written", []v1alpha1.ClusterStatus{ready, rolling, rejected}, "updated stateful workload (fully applied in 2 of 3 members)"},
		{"an immutable field; the other fields are applied", []v1alpha1.ClusterStatus{immutable}, part},
		{"an override changes the revision of its member", []v1alpha1.ClusterStatus{overridden, rolling}, "updated stateful workload"},
		{"a report about an older spec", []v1alpha1.ClusterStatus{ready, pending}, "updated stateful workload (fully applied in 1 of 2 members)"},
		{"a transient error", []v1alpha1.ClusterStatus{retried}, part},
		{"an unreachable member", []v1alpha1.ClusterStatus{unreachable}, part},
		{"a conflict while the field is as desired", []v1alpha1.ClusterStatus{conflict}, "updated stateful workload"},
		{"a conflict while the field differs", []v1alpha1.ClusterStatus{remaining}, part},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			now := sampleCache(tc.members...)
			now.Generation = 2
			now.Status.ObservedGeneration = 2
			ac := &appliedCache{before: sampleCache(ready), latest: now, generation: 2, change: change{verb: "updated", parts: []string{"stateful workload"}}}
			now.Status.Conditions = nil
			ac.completeChange()
			if got := ac.change.String(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	t.Run("labels and annotations stay on the hub", func(t *testing.T) {
		ac := &appliedCache{before: sampleCache(remaining), latest: sampleCache(remaining), generation: 1, change: change{verb: "updated", parts: []string{"metadata"}}}
		ac.completeChange()
		if got := ac.change.String(); got != "updated metadata" {
			t.Errorf("%q", got)
		}
	})
	t.Run("an invalid placement changes no member", func(t *testing.T) {
		now := sampleCache(ready)
		now.Generation = 2
		now.Status.ObservedGeneration = 2
		now.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidPlacement, ObservedGeneration: 2}}
		ac := &appliedCache{before: sampleCache(ready), latest: now, generation: 2, change: change{verb: "updated", parts: []string{"placement"}}}
		ac.completeChange()
		if got := ac.change.String(); got != none {
			t.Errorf("%q", got)
		}
	})
}

func TestCompare_NamesChangedParts(t *testing.T) {
	base := func() *v1alpha1.CacheCluster {
		cc := sampleCache()
		cc.Spec.Replicas = ptr.To[int32](2)
		cc.Spec.Placement.ClusterSelector = &metav1.LabelSelector{}
		return cc
	}
	for _, tc := range []struct {
		reason string
		change func(*v1alpha1.CacheCluster)
		want   string
	}{
		{"nothing", func(*v1alpha1.CacheCluster) {}, "nothing to change"},
		{"replicas", func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](3) }, "updated stateful workload"},
		{"an override", func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Overrides = []v1alpha1.Override{{Clusters: []string{"a"}, Replicas: ptr.To[int32](1)}}
		}, "updated stateful workload"},
		{"the service's type", func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
		}, "updated service"},
		{"the exporter, which is a container and a port", func(cc *v1alpha1.CacheCluster) { cc.Spec.Exporter = &v1alpha1.ExporterSpec{Enabled: true} }, "updated stateful workload and service"},
		{"the drift policy, which changes no child", func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Drift = &v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}}
		}, "updated policies"},
		{"placement", func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{"a"} }, "updated placement"},
		{"labels only", func(cc *v1alpha1.CacheCluster) { cc.Labels = map[string]string{"a": "b"} }, "updated metadata"},
		{"several", func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Memcached = &v1alpha1.MemcachedSpec{}
			cc.Spec.Service = &v1alpha1.ServiceSpec{}
			cc.Spec.Placement.Clusters = []string{"a"}
		}, "updated stateful workload, service and placement"},
		{"status only", func(cc *v1alpha1.CacheCluster) { cc.Status.Members = "9/9" }, "nothing to change"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			after := base()
			tc.change(after)
			if got := compare(base(), after).String(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestReportApplied_PrintsResultAndExitCode(t *testing.T) {
	ready := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
	failing := member("member-2", v1alpha1.MemberDegraded, 1, v1alpha1.ReasonImagePullFailing)
	failing.Message, failing.Hint = `pod x-0: cannot pull "memcached:9"`, "check spec.image"
	elsewhere := failing
	elsewhere.Revision = ""
	stalled := sampleCache(ready, failing)
	stalled.Status.Conditions = append(stalled.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1})
	conflicting := member("member-1", v1alpha1.MemberBlocked, 3, v1alpha1.ReasonDriftFight)
	conflicting.Class, conflicting.Message, conflicting.Hint = v1alpha1.ClassConflict, "StatefulSet/cache-cluster: spec.replicas was changed 5 times by hpa", "stop the other controller"
	conflicting.SelfResolving = true
	conflict := sampleCache(conflicting)
	conflict.Status.Conditions = append(conflict.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1})
	unseen := sampleCache()
	unseen.Status = v1alpha1.CacheClusterStatus{}
	other := func(cc *v1alpha1.CacheCluster) *v1alpha1.CacheCluster { cc.Name = "other"; return cc }
	old := sampleCache(ready)
	old.Generation, old.Spec.Replicas = 0, ptr.To[int32](9)

	type pair struct{ before, now *v1alpha1.CacheCluster }
	for _, tc := range []struct {
		reason   string
		objects  []pair
		want     string
		wantCode int
	}{
		{"a new object that became ready", []pair{{nil, sampleCache(ready)}},
			"reconcile: created stateful workload and service\nstatus: progressing -> ready", 0},
		{"a changed object that became ready", []pair{{old, sampleCache(ready)}},
			"reconcile: updated stateful workload\nstatus: progressing -> ready", 0},
		{"nothing to do", []pair{{sampleCache(ready), sampleCache(ready)}},
			"reconcile: nothing to change\nstatus: ready", 0},
		{"nothing to do, but it was not ready before", []pair{{sampleCache(failing), sampleCache(ready)}},
			"reconcile: nothing to change\nstatus: progressing -> ready", 0},
		{"a member that is not ready in time, with message and hint", []pair{{nil, sampleCache(ready, elsewhere)}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-2: Degraded 1/3 ImagePullFailing
  pod x-0: cannot pull "memcached:9"
  hint: check spec.image
reconcile: created stateful workload and service (fully applied in 1 of 2 members)
status: progressing -> not ready`, 3},
		{"stalled", []pair{{nil, stalled}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-2: Degraded 1/3 ImagePullFailing
  pod x-0: cannot pull "memcached:9"
  hint: check spec.image
reconcile: created stateful workload and service
status: progressing -> not ready`, 4},
		{"a conflict that did not end in time", []pair{{nil, conflict}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-1: Blocked 3/3 DriftFight
  StatefulSet/cache-cluster: spec.replicas was changed 5 times by hpa
  hint: stop the other controller
reconcile: created stateful workload and service
status: progressing -> not ready`, 3},
		{"a hub manager that does not run", []pair{{nil, unseen}},
			"default/cache-cluster: the hub manager has not observed this change; check that it runs and renews its lease: kubectl get lease -n reconcile-lab-system hub.cache.reconcile-lab.io -o yaml\n" +
				"reconcile: created CacheCluster on the hub, no report from any member yet\nstatus: progressing -> not ready", 3},
		{"deleted by another client", []pair{{nil, nil}},
			"default/cache-cluster: deleted by another client\nreconcile: created CacheCluster on the hub, then another client deleted it\nstatus: progressing -> not ready", 4},
		{"several new objects", []pair{{nil, sampleCache(ready)}, {nil, other(sampleCache(ready))}},
			"default/cache-cluster: created stateful workload and service, Ready\ndefault/other: created stateful workload and service, Ready\n" +
				"reconcile: created stateful workload and service\nstatus: progressing -> ready", 0},
		{"several objects with different changes", []pair{{nil, sampleCache(ready)}, {other(sampleCache(ready)), other(sampleCache(ready))}},
			"default/cache-cluster: created stateful workload and service, Ready\ndefault/other: nothing to change, Ready\n" +
				"reconcile: created 1 cache, unchanged 1 cache\nstatus: progressing -> ready", 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var all []*appliedCache
			for _, p := range tc.objects {
				ac := &appliedCache{name: "default/cache-cluster", before: p.before, generation: 1, latest: p.now}
				if p.now != nil {
					ac.name = p.now.Namespace + "/" + p.now.Name
				}
				ac.change = compare(p.before, p.now)
				all = append(all, ac)
			}
			var out bytes.Buffer
			err := (&app{out: &out}).reportApplied(all, context.DeadlineExceeded)
			if tc.wantCode == 0 {
				out.Reset()
				for _, ac := range all {
					ac.change = compare(ac.before, ac.latest)
				}
				err = (&app{out: &out}).reportApplied(all, nil)
			}
			if got := strings.TrimSpace(out.String()); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if got := exitCode(err); got != tc.wantCode {
				t.Errorf("exit code %d (%v), want %d", got, err, tc.wantCode)
			}
		})
	}
}

func TestPlacementNote_NamesAddedAndRemovedMembers(t *testing.T) {
	a, b := member("a", v1alpha1.MemberReady, 3, ""), member("b", v1alpha1.MemberReady, 3, "")
	leaving := member("a", v1alpha1.MemberDeleting, 3, "")
	if got := placementNote(sampleCache(a), sampleCache(leaving, b)); got != "(added b; removed a)" {
		t.Errorf("got %q", got)
	}
	if got := placementNote(sampleCache(a, b), sampleCache(b, a)); got != "" {
		t.Errorf("another order is not a change, got %q", got)
	}
}

func TestProgressView_Update(t *testing.T) {
	steps := [][]progressRow{
		{{subject: "a", text: "a: Progressing"}, {subject: "b", text: "b: Progressing"}},
		{{subject: "a", text: "a: Progressing"}, {subject: "b", text: "b: Ready"}},
	}
	t.Run("prints each change once without a terminal", func(t *testing.T) {
		var out bytes.Buffer
		b := newProgressView(&out)
		for _, s := range steps {
			b.update(s)
		}
		b.clear()
		if got, want := out.String(), "a: Progressing\nb: Progressing\nb: Ready\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("redraws changed rows on a terminal and clears all", func(t *testing.T) {
		var out bytes.Buffer
		b := newProgressView(&out)
		b.size = func() (int, int) { return 10, 24 }
		for _, s := range steps {
			b.update(s)
		}
		b.clear()
		want := "a: Progr…\nb: Progr…\n\x1b[1A\rb: Ready\x1b[K\x1b[1B\r\x1b[2A\x1b[J"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("fits into a small terminal", func(t *testing.T) {
		var out bytes.Buffer
		b := newProgressView(&out)
		b.size = func() (int, int) { return 80, 4 }
		var rows []progressRow
		for _, s := range []string{"1", "2", "3", "4", "5"} {
			rows = append(rows, progressRow{subject: s, text: s})
		}
		b.update(rows)
		if got, want := out.String(), "1\n2\n… and 3 more\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

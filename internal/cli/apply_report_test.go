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

func TestJudgeReadsOnlyWhatIsAboutTheGeneration(t *testing.T) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	for _, tc := range []struct {
		reason     string
		observed   int64
		conditions []metav1.Condition
		want       verdict
	}{
		{"nothing observed", 0, nil, verdictProgressing},
		{"ready", 2, []metav1.Condition{ready}, verdictReady},
		{"ready, but of the spec before", 1, []metav1.Condition{ready}, verdictProgressing},
		{"a condition of the spec before in a status of this one", 2, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}, verdictProgressing},
		{"not known is not ready", 2, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: 2}}, verdictProgressing},
		{"stalled", 2, []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 2}}, verdictStalled},
		{"a newer spec's readiness counts for this one", 3, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3}}, verdictReady},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cc := &v1alpha1.CacheCluster{}
			cc.Status.ObservedGeneration, cc.Status.Conditions = tc.observed, tc.conditions
			if got := judge(cc, 2); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestStalledIsFinalOnlyWhereSomebodyHasToAct(t *testing.T) {
	blocked := func(name, reason, hint string) v1alpha1.ClusterStatus {
		m := member(name, v1alpha1.MemberBlocked, 3, reason)
		m.Hint = hint
		return m
	}
	fight := blocked("a", v1alpha1.ReasonDriftFight, "stop the other manager")
	for _, tc := range []struct {
		reason  string
		members []v1alpha1.ClusterStatus
		placed  metav1.ConditionStatus
		want    verdict
	}{
		{"a fight ends by itself", []v1alpha1.ClusterStatus{fight}, metav1.ConditionTrue, verdictProgressing},
		{"a fight and pods that fail", []v1alpha1.ClusterStatus{fight, member("b", v1alpha1.MemberDegraded, 1, v1alpha1.ReasonPodsCrashing)}, metav1.ConditionTrue, verdictProgressing},
		{"a fight beside what stays", []v1alpha1.ClusterStatus{fight, blocked("b", v1alpha1.ReasonQuotaExceeded, "raise it")}, metav1.ConditionTrue, verdictStalled},
		{"a fight, and a placement that names nobody", []v1alpha1.ClusterStatus{fight}, metav1.ConditionFalse, verdictStalled},
		{"a namespace that is being deleted", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonNamespaceTerminating, "")}, metav1.ConditionTrue, verdictProgressing},
		{"a MemberCache of an earlier cache of this name", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonNameConflict, "")}, metav1.ConditionTrue, verdictProgressing},
		{"an object of somebody else that is being deleted", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonObjectOfAnother, "wait until it is gone, or see what holds it in the member")}, metav1.ConditionTrue, verdictProgressing},
		{"an object of somebody else", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonObjectOfAnother, "rename the CacheCluster")}, metav1.ConditionTrue, verdictStalled},
		{"an immutable field", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonImmutableField, "")}, metav1.ConditionTrue, verdictStalled},
		{"a spec that cannot be met", []v1alpha1.ClusterStatus{blocked("a", v1alpha1.ReasonInvalidSpec, "")}, metav1.ConditionTrue, verdictStalled},
		{"no member at all", nil, metav1.ConditionTrue, verdictStalled},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cc := sampleCache(tc.members...)
			cc.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionPlaced, Status: tc.placed, ObservedGeneration: 1},
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1},
			}
			if got := judge(cc, 1); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheSummaryClaimsOfMembersOnlyWhatWasSeen(t *testing.T) {
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
	away := with("b", v1alpha1.MemberUnreachable, v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)
	leaving := with("b", v1alpha1.MemberDeleting, "", v1alpha1.ReasonChildrenTerminating)
	invalid := with("b", v1alpha1.MemberBlocked, v1alpha1.ClassInvalid, v1alpha1.ReasonInvalidSpec)
	rejected := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassInvalid, v1alpha1.ReasonRejected)
	immutable := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassBlocked, v1alpha1.ReasonImmutableField)
	fight := with("c", v1alpha1.MemberBlocked, v1alpha1.ClassConflict, v1alpha1.ReasonDriftFight)
	fought := fight
	fought.OpenDrifts = []v1alpha1.DriftFinding{{Object: "StatefulSet/cache-cluster", Fields: []string{"spec.replicas"}}}

	const part, none = "updated CacheCluster on the hub, not seen in full in any member yet", "updated CacheCluster on the hub, nothing in any member"
	for _, tc := range []struct {
		reason  string
		members []v1alpha1.ClusterStatus
		want    string
	}{
		{"an invalid spec changes nothing, though the revision is the same", []v1alpha1.ClusterStatus{invalid}, none},
		{"nobody is placed", nil, none},
		{"a member on its way out is not to hold it", []v1alpha1.ClusterStatus{invalid, leaving}, none},
		{"one member alone is invalid", []v1alpha1.ClusterStatus{ready, invalid}, "updated stateful workload (seen in full in 1 of 2 members)"},
		{"a rejected child, beside which others may be written", []v1alpha1.ClusterStatus{ready, rolling, rejected}, "updated stateful workload (seen in full in 2 of 3 members)"},
		{"an immutable field, beside which everything else is applied", []v1alpha1.ClusterStatus{immutable}, part},
		{"a member's own template has a revision of its own", []v1alpha1.ClusterStatus{overridden, rolling}, "updated stateful workload"},
		{"a report about an older spec", []v1alpha1.ClusterStatus{ready, pending}, "updated stateful workload (seen in full in 1 of 2 members)"},
		{"an error that passes", []v1alpha1.ClusterStatus{retried}, part},
		{"a member that is away", []v1alpha1.ClusterStatus{away}, part},
		{"a fight, while the field is right", []v1alpha1.ClusterStatus{fight}, "updated stateful workload"},
		{"a fight, while the field is wrong", []v1alpha1.ClusterStatus{fought}, part},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			now := sampleCache(tc.members...)
			now.Generation = 2
			now.Status.ObservedGeneration = 2
			ap := &applied{before: sampleCache(ready), now: now, generation: 2, change: change{verb: "updated", what: []string{"stateful workload"}}}
			now.Status.Conditions = nil
			ap.describe()
			if got := ap.change.String(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	t.Run("labels and annotations stay on the hub", func(t *testing.T) {
		ap := &applied{before: sampleCache(fought), now: sampleCache(fought), generation: 1, change: change{verb: "updated", what: []string{"metadata"}}}
		ap.describe()
		if got := ap.change.String(); got != "updated metadata" {
			t.Errorf("%q", got)
		}
	})
	t.Run("a placement that cannot be read changes no member", func(t *testing.T) {
		now := sampleCache(ready)
		now.Generation = 2
		now.Status.ObservedGeneration = 2
		now.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidPlacement, ObservedGeneration: 2}}
		ap := &applied{before: sampleCache(ready), now: now, generation: 2, change: change{verb: "updated", what: []string{"placement"}}}
		ap.describe()
		if got := ap.change.String(); got != none {
			t.Errorf("%q", got)
		}
	})
}

func TestCompareSaysWhatChanged(t *testing.T) {
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
		{"what the hub does about drift, which changes no child", func(cc *v1alpha1.CacheCluster) {
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

func TestApplyEnds(t *testing.T) {
	ready := member("member-1", v1alpha1.MemberReady, 3, "PodsReady")
	failing := member("member-2", v1alpha1.MemberDegraded, 1, v1alpha1.ReasonImagePullFailing)
	failing.Message, failing.Hint = `pod x-0: cannot pull "memcached:9"`, "check spec.image"
	elsewhere := failing
	elsewhere.Revision = ""
	stalled := sampleCache(ready, failing)
	stalled.Status.Conditions = append(stalled.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1})
	fighting := member("member-1", v1alpha1.MemberBlocked, 3, v1alpha1.ReasonDriftFight)
	fighting.Class, fighting.Message, fighting.Hint = v1alpha1.ClassConflict, "StatefulSet/cache-cluster: spec.replicas was changed 5 times by hpa", "stop the other manager"
	fight := sampleCache(fighting)
	fight.Status.Conditions = append(fight.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: 1})
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
		{"a member that is not ready in time, with why and what to do", []pair{{nil, sampleCache(ready, elsewhere)}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-2: Degraded 1/3 ImagePullFailing
  pod x-0: cannot pull "memcached:9"
  hint: check spec.image
reconcile: created stateful workload and service (seen in full in 1 of 2 members)
status: progressing -> not ready`, 3},
		{"stalled", []pair{{nil, stalled}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-2: Degraded 1/3 ImagePullFailing
  pod x-0: cannot pull "memcached:9"
  hint: check spec.image
reconcile: created stateful workload and service
status: progressing -> not ready`, 4},
		{"a fight that did not end in time", []pair{{nil, fight}},
			`default/cache-cluster: MembersNotReady: not all members are ready
member-1: Blocked 3/3 DriftFight
  StatefulSet/cache-cluster: spec.replicas was changed 5 times by hpa
  hint: stop the other manager
reconcile: created stateful workload and service
status: progressing -> not ready`, 3},
		{"a hub whose manager does nothing", []pair{{nil, unseen}},
			"default/cache-cluster: the hub manager has not looked at this change: is it running? It renews a lease then: kubectl get lease -n reconcile-lab-system hub.cache.reconcile-lab.io -o yaml\n" +
				"reconcile: created CacheCluster on the hub, nothing seen in any member yet\nstatus: progressing -> not ready", 3},
		{"deleted meanwhile", []pair{{nil, nil}},
			"default/cache-cluster: somebody else deleted it\nreconcile: created CacheCluster on the hub, then somebody else deleted it\nstatus: progressing -> not ready", 4},
		{"several new ones", []pair{{nil, sampleCache(ready)}, {nil, other(sampleCache(ready))}},
			"default/cache-cluster: created stateful workload and service, Ready\ndefault/other: created stateful workload and service, Ready\n" +
				"reconcile: created stateful workload and service\nstatus: progressing -> ready", 0},
		{"several with different fates", []pair{{nil, sampleCache(ready)}, {other(sampleCache(ready)), other(sampleCache(ready))}},
			"default/cache-cluster: created stateful workload and service, Ready\ndefault/other: nothing to change, Ready\n" +
				"reconcile: created 1 cache, unchanged 1 cache\nstatus: progressing -> ready", 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var all []*applied
			for _, p := range tc.objects {
				ap := &applied{name: "default/cache-cluster", before: p.before, generation: 1, now: p.now}
				if p.now != nil {
					ap.name = p.now.Namespace + "/" + p.now.Name
				}
				ap.change = compare(p.before, p.now)
				all = append(all, ap)
			}
			var out bytes.Buffer
			err := (&app{out: &out}).reportApplied(all, context.DeadlineExceeded)
			if tc.wantCode == 0 {
				out.Reset()
				for _, ap := range all {
					ap.change = compare(ap.before, ap.now)
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

func TestMovedNamesTheMembersThatPlacementChanged(t *testing.T) {
	a, b := member("a", v1alpha1.MemberReady, 3, ""), member("b", v1alpha1.MemberReady, 3, "")
	leaving := member("a", v1alpha1.MemberDeleting, 3, "")
	if got := moved(sampleCache(a), sampleCache(leaving, b)); got != "(added b; removed a)" {
		t.Errorf("got %q", got)
	}
	if got := moved(sampleCache(a, b), sampleCache(b, a)); got != "" {
		t.Errorf("the order is no change, got %q", got)
	}
}

func TestBoard(t *testing.T) {
	steps := [][]boardLine{
		{{"a", "a: Progressing"}, {"b", "b: Progressing"}},
		{{"a", "a: Progressing"}, {"b", "b: Ready"}},
	}
	t.Run("prints each change once where there is no terminal", func(t *testing.T) {
		var out bytes.Buffer
		b := newBoard(&out)
		for _, s := range steps {
			b.update(s)
		}
		b.clear()
		if got, want := out.String(), "a: Progressing\nb: Progressing\nb: Ready\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("redraws on a terminal what is new and leaves nothing behind", func(t *testing.T) {
		var out bytes.Buffer
		b := newBoard(&out)
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
	t.Run("stays within a small terminal", func(t *testing.T) {
		var out bytes.Buffer
		b := newBoard(&out)
		b.size = func() (int, int) { return 80, 4 }
		b.update([]boardLine{{"1", "1"}, {"2", "2"}, {"3", "3"}, {"4", "4"}, {"5", "5"}})
		if got, want := out.String(), "1\n2\n… and 3 more\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

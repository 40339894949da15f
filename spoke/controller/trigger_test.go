package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

func TestTrigger_SkipsEventsThatNeedNoReconcile(t *testing.T) {
	set := func(ready int32) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: ready, AvailableReplicas: ready, UpdatedReplicas: 3}}
	}
	missing := set(1)
	missing.Status.Replicas = 1
	starting := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions-0"}}
	failing := starting.DeepCopy()
	failing.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	service := func(version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions", UID: "1", ResourceVersion: version}}
	}
	const none, soon = time.Duration(0), time.Second
	for _, c := range []struct {
		name string
		// deferred is when a deferred report is due.
		deferred time.Duration
		event    memberqueue.Event
		want     bool
	}{
		{"a count, no report is deferred", none, memberqueue.Event{Type: memberqueue.StatusChanged, Object: set(1)}, true},
		{"a count, a report is deferred", soon, memberqueue.Event{Type: memberqueue.StatusChanged, Object: set(1)}, false},
		{"a count, a report was due", -soon, memberqueue.Event{Type: memberqueue.StatusChanged, Object: set(1)}, true},
		{"a count, the clock was set back", time.Hour, memberqueue.Event{Type: memberqueue.StatusChanged, Object: set(1)}, true},
		{"all pods are ready", soon, memberqueue.Event{Type: memberqueue.StatusChanged, Object: set(3)}, true},
		{"pods are missing", soon, memberqueue.Event{Type: memberqueue.StatusChanged, Object: missing}, true},
		{"a pod was created", soon, memberqueue.Event{Type: memberqueue.PodChanged, Object: starting}, false},
		{"a pod was created, no report is deferred", none, memberqueue.Event{Type: memberqueue.PodChanged, Object: starting}, true},
		{"a pod cannot start", soon, memberqueue.Event{Type: memberqueue.PodChanged, Object: failing}, true},
		{"a pod that could not start was deleted", soon, memberqueue.Event{Type: memberqueue.PodChanged, Object: failing, Deleted: true}, false},
		{"drift", soon, memberqueue.Event{Type: memberqueue.ChildChanged, Object: set(1)}, true},
		{"another version of a child", none, memberqueue.Event{Type: memberqueue.ChildChanged, Object: service("8")}, true},
		{"an own write to a child", none, memberqueue.Event{Type: memberqueue.ChildChanged, Object: service("7")}, false},
		{"the deletion of a child as it was written", none, memberqueue.Event{Type: memberqueue.ChildChanged, Object: service("7"), Deleted: true}, true},
		{"an own report", none, memberqueue.Event{Type: memberqueue.MemberCacheChanged, Object: reported("7")}, false},
		{"a new spec", soon, memberqueue.Event{Type: memberqueue.MemberCacheChanged, Object: reported("8")}, true},
		{"an autoscaler", soon, memberqueue.Event{Type: memberqueue.AutoscalerChanged}, true},
		{"a reconnection", soon, memberqueue.Event{Type: memberqueue.ConnectionChanged}, true},
	} {
		m := &member{clock: clocktesting.NewFakePassiveClock(noon), writeCache: apply.NewWriteCache(), hubWrites: &expectations.Writes{}}
		m.writeCache.Store(apply.Key{Kind: children.ServiceKind, Name: "sessions"}, "shop", service("7"))
		m.hubWrites.Record(reported("7"))
		if c.deferred != none {
			m.states.deferReport(m.states.get(sessionsKey), noon.Add(c.deferred))
		}
		if got := m.Trigger(sessionsKey, c.event); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		queued := m.states.get(sessionsKey).events.queuedSince
		if c.want != queued.Equal(noon) {
			t.Errorf("%s: queued since %s", c.name, queued)
		}
	}
}

func reported(version string) client.Object {
	mc := memberCache()
	mc.ResourceVersion = version
	return mc
}

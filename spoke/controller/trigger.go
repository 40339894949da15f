package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// needsReconcile reports whether an event needs a reconcile now. Two kinds of events do
// not.
//
// The event of an own write shows nothing new. After a failed reconcile each retry would
// otherwise be two.
//
// While a report is deferred to a known time, a reconcile is due at that time anyway. An
// event that can only change the counts of the report waits for it. Otherwise each pod of a
// new cache would cost several reconciles without a report. An event does not wait if it
// shows that all pods are ready, that pods are missing, or that a pod cannot start.
func (m *member) needsReconcile(key types.NamespacedName, e memberqueue.Event, now time.Time) bool {
	switch e.Type {
	case memberqueue.MemberCacheChanged:
		return !m.hubWrites.IsLastWrite(e.Object)
	case memberqueue.ChildChanged:
		return e.Deleted || !m.wrote(e)
	case memberqueue.StatusChanged, memberqueue.PodChanged:
		return decisive(e) || !m.states.reportDeferred(key, now)
	default:
		return true
	}
}

// wrote reports whether the event shows the child as this process wrote it last.
func (m *member) wrote(e memberqueue.Event) bool {
	key, ok := keyOf(e.Object)
	if !ok {
		return false
	}
	written := m.writeCache.Latest(key, e.Object.GetNamespace(), nil)
	return written != nil && written.GetUID() == e.Object.GetUID() && written.GetResourceVersion() == e.Object.GetResourceVersion()
}

// decisive reports whether an event shows that all pods are ready, that pods are missing,
// or that a pod cannot start. The diagnosis of missing pods counts from that event.
func decisive(e memberqueue.Event) bool {
	switch object := e.Object.(type) {
	case *appsv1.StatefulSet:
		return observe.Observe(object, nil).State == v1alpha1.MemberReady || observe.MissesPods(object)
	case *corev1.Pod:
		return !e.Deleted && observe.PodProblem(object).Reason != ""
	default:
		return true
	}
}

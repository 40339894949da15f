package memberqueue

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// EventType is what an event shows.
type EventType int

const (
	// ConnectionChanged is a member that was connected or disconnected.
	ConnectionChanged EventType = iota
	// MemberCacheChanged is another version of the MemberCache in the hub's cache.
	MemberCacheChanged
	// ChildChanged is a child that was created or deleted, or whose metadata, spec or
	// ownership changed.
	ChildChanged
	// StatusChanged is a change of only the status of a StatefulSet.
	StatusChanged
	// PodChanged is a pod that was created or deleted, or cannot start for another reason.
	PodChanged
	// AutoscalerChanged is a change of the target or the range of an autoscaler.
	AutoscalerChanged
)

// Event is a change that concerns one MemberCache.
type Event struct {
	Type EventType
	// Object is the changed object in its last known version, nil for ConnectionChanged.
	// Deleted reports whether the object was deleted.
	Object  client.Object
	Deleted bool
}

// watchMember handles the events of a member's children, pods and autoscalers.
func (s *Queues) watchMember(ctx context.Context, name string, cl cluster.Cluster, autoscalers bool) error {
	m := memberEvents{queues: s, member: name}
	watch := func(object client.Object, handler toolscache.ResourceEventHandler) error {
		informer, err := cl.GetCache().GetInformer(ctx, object)
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(handler)
		return err
	}
	if autoscalers {
		if err := watch(&autoscalingv2.HorizontalPodAutoscaler{}, m.autoscalerHandler()); err != nil {
			return err
		}
	}
	for _, object := range Kinds() {
		if err := watch(object, m.childHandler()); err != nil {
			return err
		}
	}
	return nil
}

// memberEvents turns the events of a member's informers into events of MemberCaches. The
// objects of an initial list are no events: the engagement queues every MemberCache once.
type memberEvents struct {
	queues *Queues
	member string
}

func (m memberEvents) childHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				m.onChild(object, false, false)
			}
		},
		UpdateFunc: func(old, object any) {
			if unchanged(old, object) {
				return
			}
			// A child that is moved from one cache to another concerns both.
			if cacheOf(old) != cacheOf(object) {
				m.onChild(old, false, false)
			}
			m.onChild(object, statusOnly(old, object), false)
		},
		// A child that loses the label leaves the watch as deleted, with its last labels.
		DeleteFunc: func(object any) {
			object = lastKnown(object)
			m.onChild(object, false, true)
			if child, ok := object.(client.Object); ok {
				if q := m.queues.find(m.member); q != nil {
					q.member.ChildDeleted(child)
				}
			}
		},
	}
}

func (m memberEvents) onChild(object any, statusOnly, deleted bool) {
	child, ok := object.(client.Object)
	if !ok || cacheOf(object) == "" {
		return
	}
	e := Event{Type: ChildChanged, Object: child, Deleted: deleted}
	if _, isPod := object.(*corev1.Pod); isPod {
		e.Type = PodChanged
	} else if statusOnly {
		e.Type = StatusChanged
	}
	m.trigger(child.GetNamespace(), cacheOf(object), e)
}

// trigger passes an event on to the queue of the member, if it has one.
func (m memberEvents) trigger(namespace, cache string, e Event) {
	if q := m.queues.find(m.member); q != nil {
		q.trigger(keyOf(namespace, cache, m.member), e)
	}
}

// autoscalerHandler triggers the MemberCache whose replicas an autoscaler begins or ceases
// to own. The status of an autoscaler changes all the time and is ignored.
func (m memberEvents) autoscalerHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				m.onAutoscaler(object)
			}
		},
		UpdateFunc: func(old, object any) {
			before, ok1 := old.(*autoscalingv2.HorizontalPodAutoscaler)
			after, ok2 := object.(*autoscalingv2.HorizontalPodAutoscaler)
			if ok1 && ok2 && before.Spec.ScaleTargetRef == after.Spec.ScaleTargetRef && before.Spec.MaxReplicas == after.Spec.MaxReplicas &&
				ptr.Equal(before.Spec.MinReplicas, after.Spec.MinReplicas) {
				return
			}
			m.onAutoscaler(old)
			m.onAutoscaler(object)
		},
		DeleteFunc: func(object any) { m.onAutoscaler(lastKnown(object)) },
	}
}

func (m memberEvents) onAutoscaler(object any) {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || ScaledStatefulSet(hpa) == "" {
		return
	}
	m.trigger(hpa.Namespace, ScaledStatefulSet(hpa), Event{Type: AutoscalerChanged, Object: hpa})
}

// cacheOf returns the cache that an object is labelled with, or empty.
func cacheOf(object any) string {
	if o, ok := object.(metav1.Object); ok {
		return o.GetLabels()[v1alpha1.LabelCacheCluster]
	}
	return ""
}

// unchanged reports whether an update is a resync, or of a pod without a change that
// observe reads.
func unchanged(old, object any) bool {
	before, ok1 := old.(metav1.Object)
	after, ok2 := object.(metav1.Object)
	if ok1 && ok2 && before.GetResourceVersion() == after.GetResourceVersion() {
		return true
	}
	oldPod, ok1 := old.(*corev1.Pod)
	newPod, ok2 := object.(*corev1.Pod)
	return ok1 && ok2 && observe.PodProblem(oldPod) == observe.PodProblem(newPod)
}

// statusOnly reports whether an update changed nothing but the status of a StatefulSet.
// Other kinds are left out: a Service has no generation that shows a change of its spec.
func statusOnly(old, object any) bool {
	before, ok1 := old.(*appsv1.StatefulSet)
	after, ok2 := object.(*appsv1.StatefulSet)
	return ok1 && ok2 && before.UID == after.UID && before.Generation == after.Generation &&
		before.DeletionTimestamp.Equal(after.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(before.Labels, after.Labels) && equality.Semantic.DeepEqual(before.Annotations, after.Annotations) &&
		equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) && equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) &&
		slices.EqualFunc(specOwners(before), specOwners(after), func(a, b metav1.ManagedFieldsEntry) bool { return equality.Semantic.DeepEqual(a, b) })
}

// specOwners returns the field managers of everything but the status.
func specOwners(object metav1.Object) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(object.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" })
}

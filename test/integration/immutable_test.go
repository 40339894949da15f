package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// storing is a cache with a volume for each pod.
func storing(namespace, name string, members ...string) *v1alpha1.CacheCluster {
	cc := cache(namespace, name, members...)
	cc.Spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")}
	return cc
}

func setOf(t *testing.T, member, namespace, name string) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	reload(t, lab.Members[member].Client, set)
	return set
}

// becomesSet waits until a StatefulSet is as check wants it.
func becomesSet(t *testing.T, member, namespace, name, what string, check func(*appsv1.StatefulSet) error) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	eventually(t, name+" "+what, func(ctx context.Context) error {
		if err := lab.Members[member].Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
			return err
		}
		return check(set)
	})
	return set
}

func notThere(ctx context.Context, c client.Client, object client.Object) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%T %s is there: %w", object, object.GetName(), err)
	}
	return nil
}

func sizeOf(set *appsv1.StatefulSet) string {
	if len(set.Spec.VolumeClaimTemplates) != 1 {
		return fmt.Sprintf("%d claim templates", len(set.Spec.VolumeClaimTemplates))
	}
	return set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
}

// Not parallel: it counts every write request of the process.
func TestImmutableField_IsNamedWhileOthersAreApplied(t *testing.T) {
	ns := namespace(t, "immutable")
	cc := create(t, storing(ns, "sessions", one, two))
	isReady(t, cc)
	before := setOf(t, one, ns, "sessions")

	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Storage.Size = resource.MustParse("2Gi")
		cc.Spec.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
		cc.Spec.Replicas = ptr.To[int32](3)
		cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
	})
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	contains(t, "message", entry.Message, `spec.podManagementPolicy cannot change from "Parallel" to "OrderedReady"`,
		`spec.volumeClaimTemplates[name="data"].spec.resources.requests.storage cannot change from 1Gi to 2Gi`)
	contains(t, "hint", entry.Hint, "spec.recreate: OrphanPods", "revert the field")
	inState(t, cc, two, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	becomesSet(t, one, ns, "sessions", "is scaled", func(set *appsv1.StatefulSet) error {
		if set.UID != before.UID || *set.Spec.Replicas != 3 || sizeOf(set) != "1Gi" {
			return fmt.Errorf("UID %s (was %s), %d replicas, %s", set.UID, before.UID, *set.Spec.Replicas, sizeOf(set))
		}
		return nil
	})
	reload(t, lab.Members[one].Client, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}})

	// Drift is corrected, and a child that is not wanted any more is removed.
	set := setOf(t, one, ns, "sessions")
	edit(t, one, set, func() { set.Spec.Template.Spec.Containers[0].Image = "memcached:evil" })
	becomesSet(t, one, ns, "sessions", "has its image back", func(set *appsv1.StatefulSet) error {
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6" {
			return errors.New(got)
		}
		return nil
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Service = nil })
	eventually(t, "the client Service goes", func(ctx context.Context) error {
		return notThere(ctx, lab.Members[one].Client, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}})
	})

	// A state that waits for another client writes nothing.
	inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	staysQuiet(t, ns)

	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Storage.Size, cc.Spec.Pod = resource.MustParse("1024Mi"), nil
	})
	isReady(t, cc)
	if after := setOf(t, one, ns, "sessions"); after.UID != before.UID {
		t.Error("the StatefulSet was replaced")
	}
}

// Not parallel: it stops the manager.
func TestRecreate_SurvivesManagerRestart(t *testing.T) {
	ns := namespace(t, "recreate")
	cc := create(t, storing(ns, "sessions", one))
	isReady(t, cc)
	before := setOf(t, one, ns, "sessions")
	const hold = "example.org/hold"
	edit(t, one, before, func() { controllerutil.AddFinalizer(before, hold) })

	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Storage.Size, cc.Spec.Recreate = resource.MustParse("2Gi"), v1alpha1.RecreateOrphanPods
	})
	entry := inState(t, cc, one, v1alpha1.MemberProgressing, v1alpha1.ReasonRecreating)
	contains(t, "message", entry.Message, "StatefulSet/sessions", "its running pods stay")
	becomesSet(t, one, ns, "sessions", "is deleted", func(set *appsv1.StatefulSet) error {
		if set.DeletionTimestamp == nil {
			return errors.New("not yet")
		}
		return nil
	})
	// The manager stops between deletion and creation.
	if err := lab.stopManager(); err != nil {
		t.Fatal(err)
	}
	goingSet := setOf(t, one, ns, "sessions")
	edit(t, one, goingSet, func() { controllerutil.RemoveFinalizer(goingSet, hold) })
	eventually(t, "the old StatefulSet goes", func(ctx context.Context) error {
		return notThere(ctx, lab.Members[one].Client, before.DeepCopy())
	})
	if err := lab.startManager(); err != nil {
		t.Fatal(err)
	}
	isReady(t, cc)
	after := setOf(t, one, ns, "sessions")
	if after.UID == before.UID || sizeOf(after) != "2Gi" {
		t.Errorf("UID %s, was %s; %s", after.UID, before.UID, sizeOf(after))
	}
	if n := countOf(t, cc, one); n != 0 {
		t.Errorf("%d drifts: what we deleted ourselves is none", n)
	}
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions." + one}}
	reload(t, lab.Hub.Client, mc)
	for _, e := range mc.Status.Inventory {
		if e.Recreating {
			t.Errorf("%s/%s is still noted as being recreated", e.Kind, e.Name)
		}
	}
}

func TestRecreate_DeletionInBetweenLeavesNothing(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "recreate-deleted")
	cc := create(t, storing(ns, "sessions", one))
	isReady(t, cc)
	set := setOf(t, one, ns, "sessions")
	const hold = "example.org/hold"
	edit(t, one, set, func() { controllerutil.AddFinalizer(set, hold) })
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Storage.Size, cc.Spec.Recreate = resource.MustParse("2Gi"), v1alpha1.RecreateOrphanPods
	})
	inState(t, cc, one, v1alpha1.MemberProgressing, v1alpha1.ReasonRecreating)
	becomesSet(t, one, ns, "sessions", "is deleted", func(set *appsv1.StatefulSet) error {
		if set.DeletionTimestamp == nil {
			return errors.New("not yet")
		}
		return nil
	})
	// What follows the old one is where its pods go; it must come before it may go.
	watcher, err := client.NewWithWatch(lab.Members[one].Config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := watcher.Watch(t.Context(), &appsv1.StatefulSetList{}, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	adopted := make(chan bool, 1)
	old := set.UID
	go func() {
		for event := range watched.ResultChan() {
			if now, ok := event.Object.(*appsv1.StatefulSet); ok && now.UID != old && now.DeletionTimestamp == nil && now.Status.ObservedGeneration > 0 {
				adopted <- true
				return
			}
		}
		adopted <- false
	}()
	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	edit(t, one, set, func() { controllerutil.RemoveFinalizer(set, hold) })
	gone(t, one, ns, "sessions")
	eventually(t, "the CacheCluster goes", func(ctx context.Context) error {
		return notThere(ctx, lab.Hub.Client, cc)
	})
	watched.Stop()
	if !<-adopted {
		t.Error("no StatefulSet took over the orphaned pods before the deletion: they would run for ever")
	}
}

func TestRecreate_ReplacesServiceWithOtherClusterIP(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "immutable-service")
	cc := create(t, cache(ns, "sessions", two))
	isReady(t, cc)
	// With our mark, as if someone had deleted ours and written it back from a file.
	marks := &v1alpha1.MemberCache{Spec: v1alpha1.MemberCacheSpec{CacheClusterUID: string(cc.UID), Cluster: one}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions", Labels: children.Labels("sessions", one),
			Annotations: map[string]string{v1alpha1.AnnotationOwner: children.OwnerMark(marks)}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "old", Port: 1}}},
	}
	mustCreate(t, lab.Members[one].Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	mustCreate(t, lab.Members[one].Server, service)
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one, two} })
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	contains(t, "message", entry.Message, "Service/sessions", fmt.Sprintf("spec.clusterIP cannot change from %q to %q", service.Spec.ClusterIP, "None"))
	contains(t, "hint", entry.Hint, "delete and recreate the object")
	now := service.DeepCopy()
	reload(t, lab.Members[one].Client, now)
	if now.UID != service.UID || len(now.Spec.Selector) == 0 {
		t.Errorf("selector %v: what can be applied is not", now.Spec.Selector)
	}
	setOf(t, one, ns, "sessions")
	drifts := countOf(t, cc, one)

	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Recreate = v1alpha1.RecreateOrphanPods })
	isReady(t, cc)
	reload(t, lab.Members[one].Client, now)
	if now.UID == service.UID || now.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("address %q", now.Spec.ClusterIP)
	}
	if n := countOf(t, cc, one); n != drifts {
		t.Errorf("%d drifts, had %d: what we deleted ourselves is none", n, drifts)
	}
}

func TestDrift_CorrectsTypeOfService(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "service-type")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	edit(t, one, service, func() {
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
	})
	eventually(t, "the Service is headless again", func(ctx context.Context) error {
		if err := lab.Members[one].Client.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if service.Spec.Type != corev1.ServiceTypeClusterIP || service.Spec.ClusterIP != corev1.ClusterIPNone {
			return fmt.Errorf("type %s, address %q", service.Spec.Type, service.Spec.ClusterIP)
		}
		return nil
	})
	isReady(t, cc)
}

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestDeletion_RemovesPodsBeforeService(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "deletion-order")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	set := setOf(t, one, ns, "sessions")
	const hold = "example.org/hold"
	edit(t, one, set, func() { controllerutil.AddFinalizer(set, hold) })
	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	becomes(t, cc, "reports what it waits for", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if want := "removing StatefulSet/sessions and its pods, then PodDisruptionBudget/sessions, Service/sessions"; entry.State != v1alpha1.MemberDeleting || entry.Message != want {
			return fmt.Errorf("%s: %q", entry.State, entry.Message)
		}
		return nil
	})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	reload(t, lab.Members[one].Client, service)
	if service.DeletionTimestamp != nil {
		t.Error("the Service goes while pods run")
	}
	edit(t, one, set, func() { controllerutil.RemoveFinalizer(set, hold) })
	gone(t, one, ns, "sessions")
}

func TestDeletion_OrphansKeepRunningAndCanBeTakenOver(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "orphan")
	cc := create(t, cache(ns, "sessions", one, two))
	isReady(t, cc)
	// The policy and the deletion come at once, and the policy counts.
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Deletion = &v1alpha1.DeletionPolicy{Policy: v1alpha1.DeletionOrphan}
		cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
	})
	isReady(t, cc)
	extra := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}}
	reload(t, lab.Members[one].Client, extra)
	// A child that is not wanted any more always goes.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Service = nil })
	eventually(t, "the client Service goes", func(ctx context.Context) error { return notThere(ctx, lab.Members[one].Client, extra) })
	isReady(t, cc)
	before := identities(t, one, ns, "sessions")

	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the CacheCluster goes", func(ctx context.Context) error { return notThere(ctx, lab.Hub.Client, cc) })
	if diff := cmp.Diff(before, identities(t, one, ns, "sessions")); diff != "" {
		t.Errorf("orphans are not as they were (-before +after):\n%s", diff)
	}
	for _, object := range childKinds(ns, "sessions") {
		reload(t, lab.Members[two].Client, object)
		for _, label := range []string{v1alpha1.LabelCacheCluster, v1alpha1.LabelCluster, v1alpha1.LabelManagedBy} {
			if _, has := object.GetLabels()[label]; has {
				t.Errorf("%T still has the label %s", object, label)
			}
		}
		if len(object.GetAnnotations()) > 0 {
			t.Errorf("%T still has the annotations %v", object, object.GetAnnotations())
		}
	}

	again := cache(ns, "sessions", one, two)
	again.Spec.Takeover = v1alpha1.TakeoverIfMatching
	create(t, again)
	isReady(t, again)
	if diff := cmp.Diff(before, identities(t, one, ns, "sessions")); diff != "" {
		t.Errorf("taken over, they are not as they were (-before +after):\n%s", diff)
	}
}

// Not parallel: it stops the manager.
func TestDeletion_HonorsPolicyThatChangesWithIt(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*testing.T, *v1alpha1.CacheCluster)
	}{
		{"orphan-deleted", func(t *testing.T, cc *v1alpha1.CacheCluster) {
			change(t, cc, func(cc *v1alpha1.CacheCluster) {
				cc.Spec.Deletion = &v1alpha1.DeletionPolicy{Policy: v1alpha1.DeletionOrphan}
			})
			if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
				t.Fatal(err)
			}
		}},
		{"orphan-unplaced", func(t *testing.T, cc *v1alpha1.CacheCluster) {
			change(t, cc, func(cc *v1alpha1.CacheCluster) {
				cc.Spec.Deletion = &v1alpha1.DeletionPolicy{Policy: v1alpha1.DeletionOrphan}
				cc.Spec.Placement.Clusters = []string{two}
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := namespace(t, c.name)
			cc := create(t, cache(ns, "sessions", one, two))
			isReady(t, cc)
			before := identities(t, one, ns, "sessions")
			if err := lab.stopManager(); err != nil {
				t.Fatal(err)
			}
			c.end(t, cc)
			if err := lab.startManager(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the MemberCache is deleted", func(ctx context.Context) error {
				var left v1alpha1.MemberCacheList
				if err := lab.Hub.Client.List(ctx, &left, client.InNamespace(ns)); err != nil {
					return err
				}
				for i := range left.Items {
					if left.Items[i].Spec.Cluster == one {
						return errors.New("its MemberCache is there")
					}
				}
				return nil
			})
			if diff := cmp.Diff(before, identities(t, one, ns, "sessions")); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

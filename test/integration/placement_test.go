package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestPlacement_CreatesAndRemovesChildren(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "placement")
	cc := cache(ns, "sessions")
	cc.Spec.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "lab"}}}
	cc.Spec.Overrides = []v1alpha1.Override{{Clusters: []string{two}, Replicas: ptr.To[int32](1)}}
	create(t, cc)
	isReady(t, cc)
	if cc.Status.Members != "2/2" || cc.Status.Replicas != 3 || cc.Status.ReadyReplicas != 3 {
		t.Errorf("members %s, replicas %d, ready %d", cc.Status.Members, cc.Status.Replicas, cc.Status.ReadyReplicas)
	}
	for member, replicas := range map[string]int32{one: 2, two: 1} {
		var created corev1.Namespace
		if err := lab.Members[member].Client.Get(t.Context(), types.NamespacedName{Name: ns}, &created); err != nil {
			t.Errorf("the namespace was not created in %s: %v", member, err)
		}
		for _, object := range childKinds(ns, "sessions") {
			reload(t, lab.Members[member].Client, object)
			if set, ok := object.(*appsv1.StatefulSet); ok && *set.Spec.Replicas != replicas {
				t.Errorf("%s runs %d replicas, want %d", member, *set.Spec.Replicas, replicas)
			}
		}
		entry, err := statusOf(cc, member)
		if err != nil || entry.Replicas != replicas || entry.ReadyReplicas != replicas {
			t.Errorf("%s: %v %+v", member, err, entry)
		}
	}

	t.Run("a member that is no longer placed loses its children, the other one keeps them", func(t *testing.T) {
		kept := versionsOf(t, one, ns, "sessions")
		change(t, cc, func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Placement = v1alpha1.Placement{Clusters: []string{one}}
		})
		gone(t, two, ns, "sessions")
		becomes(t, cc, "forgets the member", func(cc *v1alpha1.CacheCluster) error {
			if cc.Status.Members != "1/1" || len(cc.Status.Clusters) != 1 {
				return fmt.Errorf("members %s, entries %d", cc.Status.Members, len(cc.Status.Clusters))
			}
			return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
		})
		if now := versionsOf(t, one, ns, "sessions"); fmt.Sprint(now) != fmt.Sprint(kept) {
			t.Errorf("the other member was touched: %v, then %v", kept, now)
		}
	})

	t.Run("a member that is placed again gets them again", func(t *testing.T) {
		change(t, cc, func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Placement = v1alpha1.Placement{Clusters: []string{two, one}}
		})
		inState(t, cc, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
		isReady(t, cc)
	})

	t.Run("a deleted cache leaves nothing but the namespaces", func(t *testing.T) {
		if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
			t.Fatal(err)
		}
		for member := range lab.Members {
			gone(t, member, ns, "sessions")
			var kept corev1.Namespace
			if err := lab.Members[member].Client.Get(t.Context(), types.NamespacedName{Name: ns}, &kept); err != nil || kept.DeletionTimestamp != nil {
				t.Errorf("the namespace of %s: %v, deleted %v", member, err, kept.DeletionTimestamp)
			}
		}
		eventually(t, "nothing on the hub", func(ctx context.Context) error {
			var left v1alpha1.MemberCacheList
			if err := lab.Hub.Client.List(ctx, &left, client.InNamespace(ns)); err != nil || len(left.Items) > 0 {
				return fmt.Errorf("%d MemberCaches: %w", len(left.Items), err)
			}
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the CacheCluster is there: %v, finalizers %v", err, cc.Finalizers)
			}
			return nil
		})
	})
}

func TestUpdate_ReachesEveryMemberAndPrunesChildren(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "update")
	cc := cache(ns, "sessions", one, two)
	cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
	cc.Spec.Exporter = &v1alpha1.ExporterSpec{Enabled: true}
	create(t, cc)
	isReady(t, cc)
	virtual := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	for _, m := range lab.Members {
		reload(t, m.Client, virtual)
		if virtual.Spec.ClusterIP == corev1.ClusterIPNone || len(virtual.Spec.Ports) != 2 {
			t.Errorf("client Service: %+v", virtual.Spec)
		}
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Service, cc.Spec.Exporter, cc.Spec.Version = nil, nil, "1.6.39"
		cc.Spec.Replicas = ptr.To[int32](3)
	})
	isReady(t, cc)
	for name, m := range lab.Members {
		reload(t, m.Client, set)
		if c := set.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Image != "memcached:1.6.39" || *set.Spec.Replicas != 3 {
			t.Errorf("%s: %d replicas of %v", name, *set.Spec.Replicas, c)
		}
		eventually(t, "the client Service goes from "+name, func(ctx context.Context) error {
			if err := m.Client.Get(ctx, client.ObjectKeyFromObject(virtual), virtual); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %v", err)
			}
			return nil
		})
	}
	for _, member := range []string{one, two} {
		if n := countOf(t, cc, member); n != 0 {
			t.Errorf("%d drifts in %s: a changed spec is none", n, member)
		}
	}

	t.Run("through the scale subresource", func(t *testing.T) {
		scale := &autoscalingv1.Scale{}
		if err := lab.Hub.Client.SubResource("scale").Get(t.Context(), cc, scale); err != nil {
			t.Fatal(err)
		}
		if scale.Spec.Replicas != 3 || scale.Status.Replicas != 6 || scale.Status.Selector == "" {
			t.Errorf("scale %+v", scale)
		}
		scale.Spec.Replicas = 1
		if err := lab.Hub.Client.SubResource("scale").Update(t.Context(), cc, client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		becomes(t, cc, "is scaled", func(cc *v1alpha1.CacheCluster) error {
			if cc.Status.ReadyReplicas != 2 {
				return fmt.Errorf("%d ready replicas", cc.Status.ReadyReplicas)
			}
			return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
		})
	})

	t.Run("an immutable field blocks until it is reverted", func(t *testing.T) {
		before := setOf(t, one, ns, "sessions")
		change(t, cc, func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
		})
		entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
		contains(t, "hint", entry.Hint, "revert the field")
		if after := setOf(t, one, ns, "sessions"); after.UID != before.UID || after.Generation != before.Generation {
			t.Errorf("the StatefulSet was changed: generation %d, was %d", after.Generation, before.Generation)
		}
		change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Pod = nil })
		isReady(t, cc)
	})
}

func TestNameConflict_ObjectOfAnotherOwnerIsNamedAndKept(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "another-owner")
	labels := map[string]string{"app": "mine"}
	foreign := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions", Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), ServiceName: "mine", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "mine:1"}}}}},
	}
	member := lab.Members[one]
	mustCreate(t, member.Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	if err := member.Client.Create(t.Context(), foreign, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stand-in has seen the foreign StatefulSet", func(ctx context.Context) error {
		if err := member.Client.Get(ctx, client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Status.ReadyReplicas != 1 {
			return fmt.Errorf("%d ready: %w", foreign.Status.ReadyReplicas, err)
		}
		return nil
	})
	version := foreign.ResourceVersion
	cc := create(t, cache(ns, "sessions", one, two))
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
	contains(t, "message", entry.Message, "StatefulSet/sessions", "helm")
	contains(t, "hint", entry.Hint, "kubectl delete -n "+ns+" statefulset/sessions")
	inState(t, cc, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	becomes(t, cc, "reports it", func(cc *v1alpha1.CacheCluster) error {
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMembersBlocked)
	})

	t.Run("deleting the cache leaves it alone too", func(t *testing.T) {
		if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
			t.Fatal(err)
		}
		gone(t, two, ns, "sessions")
		eventually(t, "the cache is deleted", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %v", err)
			}
			return nil
		})
		reload(t, member.Client, foreign)
		if foreign.ResourceVersion != version {
			t.Errorf("it was changed: version %s, then %s", version, foreign.ResourceVersion)
		}
	})

	t.Run("once it is removed the cache takes its place", func(t *testing.T) {
		cc := create(t, cache(ns, "sessions", one))
		inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
		if err := member.Client.Delete(t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		// Nothing announces it: the object is not among those that are watched.
		isReady(t, cc)
	})
}

// A Service with an address of its own cannot become a headless one: the API server
// rejects the desired Service as invalid, while the cause is another owner's object.
func TestNameConflict_InvalidServiceOfAnotherOwnerIsNamed(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "foreign-service")
	member := lab.Members[one]
	mustCreate(t, member.Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 4242}}}}
	mustCreate(t, member.Server, foreign)
	cc := create(t, cache(ns, "sessions", one))
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
	contains(t, "message", entry.Message, "Service/sessions")
	version := foreign.ResourceVersion
	reload(t, member.Client, foreign)
	if foreign.ResourceVersion != version {
		t.Error("it was changed")
	}
}

func TestPlacement_UnknownMemberDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "unknown-member")
	cc := create(t, cache(ns, "sessions", "nowhere", one))
	inState(t, cc, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	entry := inState(t, cc, "nowhere", v1alpha1.MemberBlocked, v1alpha1.ReasonUnknownMember)
	contains(t, "message", entry.Message, "spec.placement.clusters[0]", `"nowhere"`)
	contains(t, "hint", entry.Hint, "reconcile-lab join nowhere")
	becomes(t, cc, "reports it", func(cc *v1alpha1.CacheCluster) error {
		return has(cc, v1alpha1.ConditionPlaced, metav1.ConditionFalse, v1alpha1.ReasonUnknownMembers)
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one} })
	isReady(t, cc)
}

func TestPlacement_WithoutMatchReportsCause(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "nowhere")
	cc := cache(ns, "sessions")
	cc.Spec.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}
	create(t, cc)
	becomes(t, cc, "reports it", func(cc *v1alpha1.CacheCluster) error {
		if err := has(cc, v1alpha1.ConditionPlaced, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingMembers); err != nil {
			return err
		}
		return has(cc, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNoMatchingMembers)
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Placement.ClusterSelector.MatchLabels = map[string]string{"name": one}
	})
	isReady(t, cc)

	t.Run("a selector that can't be read leaves everything as it is", func(t *testing.T) {
		before := versionsOf(t, one, ns, "sessions")
		change(t, cc, func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near", Values: []string{"x"}}}}
		})
		becomes(t, cc, "reports it", func(cc *v1alpha1.CacheCluster) error {
			return has(cc, v1alpha1.ConditionPlaced, metav1.ConditionFalse, v1alpha1.ReasonInvalidPlacement)
		})
		if after := versionsOf(t, one, ns, "sessions"); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("children were touched: %v, then %v", before, after)
		}
	})
}

func TestPlacement_CreatesNamespaceOnlyWhenAllowed(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "no-namespace")
	cc := cache(ns, "sessions", one)
	cc.Spec.Placement.CreateNamespace = ptr.To(false)
	create(t, cc)
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonNamespaceMissing)
	contains(t, "hint", entry.Hint, "createNamespace: true")
	var none corev1.Namespace
	if err := lab.Members[one].Client.Get(t.Context(), types.NamespacedName{Name: ns}, &none); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace was created: %v", err)
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.CreateNamespace = ptr.To(true) })
	isReady(t, cc)
}

func TestOverride_InvalidIsNamedAndNothingIsApplied(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "bad-override")
	cc := cache(ns, "sessions", one, two)
	cc.Spec.Overrides = []v1alpha1.Override{{Clusters: []string{two}, Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: quantity("40Mi")}}}
	create(t, cc)
	entry := inState(t, cc, two, v1alpha1.MemberBlocked, v1alpha1.ReasonInvalidSpec)
	contains(t, "message", entry.Message, "spec.memcached.maxItemSize", `"40Mi"`, "at most half of memory", "spec.overrides[0]")
	inState(t, cc, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	for _, object := range childKinds(ns, "sessions") {
		if err := lab.Members[two].Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T was created: %v", object, err)
		}
	}
}

func TestMemberCache_IsCorrectedByHub(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "membercache")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions." + one}}
	back := func(t *testing.T, what string, check func() error) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(mc), mc); err != nil {
				return err
			}
			return check()
		})
		isReady(t, cc)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
		eventually(t, "two replicas", func(ctx context.Context) error {
			if err := lab.Members[one].Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || *set.Spec.Replicas != 2 {
				return fmt.Errorf("%v replicas: %w", set.Spec.Replicas, err)
			}
			return nil
		})
	}
	patch := func(t *testing.T, body string) {
		t.Helper()
		if err := lab.Hub.Client.Patch(t.Context(), mc, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("its spec", func(t *testing.T) {
		patch(t, `{"spec":{"template":{"replicas":7}}}`)
		back(t, "the spec is corrected", func() error {
			if *mc.Spec.Template.Replicas != 2 {
				return fmt.Errorf("%d replicas", *mc.Spec.Template.Replicas)
			}
			return nil
		})
	})
	t.Run("its labels, by which it is found", func(t *testing.T) {
		patch(t, `{"metadata":{"labels":null}}`)
		back(t, "the labels are put back", func() error {
			if mc.Labels[v1alpha1.LabelCacheCluster] != "sessions" || mc.Labels[v1alpha1.LabelCluster] != one {
				return fmt.Errorf("labels %v", mc.Labels)
			}
			return nil
		})
	})
	t.Run("its finalizer, and others' are kept", func(t *testing.T) {
		patch(t, `{"metadata":{"finalizers":["example.org/mine"]}}`)
		back(t, "the finalizer is corrected", func() error {
			if got := strings.Join(mc.Finalizers, " "); !strings.Contains(got, v1alpha1.Finalizer) || !strings.Contains(got, "example.org/mine") {
				return fmt.Errorf("finalizers %q", got)
			}
			return nil
		})
		patch(t, `{"metadata":{"finalizers":["`+v1alpha1.Finalizer+`"]}}`)
	})
	t.Run("the finalizer of its CacheCluster", func(t *testing.T) {
		if err := lab.Hub.Client.Patch(t.Context(), cc, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is corrected", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); err != nil || !controllerutil.ContainsFinalizer(cc, v1alpha1.Finalizer) {
				return fmt.Errorf("finalizers %q, %v", cc.Finalizers, err)
			}
			return nil
		})
	})
	t.Run("itself", func(t *testing.T) {
		reload(t, lab.Hub.Client, mc)
		old := mc.UID
		if err := lab.Hub.Client.Delete(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		back(t, "another one comes", func() error {
			if mc.UID == old {
				return fmt.Errorf("it is the old one still, finalizers %v", mc.Finalizers)
			}
			return nil
		})
	})
}

func TestMemberCache_OfAnotherOwnerIsNamedAndKept(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "name-conflict")
	for _, of := range []string{"sessions", "another"} {
		t.Run("for the cache "+of, func(t *testing.T) {
			// Its own placement does not matter here: it names a member that does not exist.
			theirs := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions." + one},
				Spec: v1alpha1.MemberCacheSpec{CacheCluster: of, Cluster: "nowhere", Revision: "theirs"}}
			mustCreate(t, lab.Hub, theirs)
			cc := create(t, cache(ns, "sessions", one, two))
			entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonNameConflict)
			contains(t, "message", entry.Message, "sessions."+one)
			contains(t, "hint", entry.Hint, "kubectl delete mcache -n "+ns)
			inState(t, cc, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
			reload(t, lab.Hub.Client, theirs)
			if theirs.Spec.Revision != "theirs" || len(theirs.OwnerReferences) > 0 {
				t.Errorf("it was changed: %+v", theirs)
			}
			if err := lab.Hub.Client.Delete(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			isReady(t, cc)
			if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the cache is deleted", func(ctx context.Context) error {
				if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %v", err)
				}
				return nil
			})
		})
	}
}

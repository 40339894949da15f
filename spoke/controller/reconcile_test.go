package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// lagging is a member whose cache shows nothing yet of what its API server holds.
type lagging struct {
	cluster.Cluster
	api client.Client
}

// GetClient reads from the cache, as a cluster's client does.
func (l lagging) GetClient() client.Client    { return cached{Client: l.api, cache: l.GetCache()} }
func (l lagging) GetAPIReader() client.Reader { return l.api }
func (l lagging) GetCache() cache.Cache {
	empty := fake.NewClientBuilder().WithScheme(memberScheme)
	for _, kind := range MemberKinds() {
		empty.WithIndex(kind, carriedField, carriedBy)
	}
	return emptyCache{reader: empty.Build()}
}

type cached struct {
	client.Client
	cache client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return c.cache.Get(ctx, key, object, o...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return c.cache.List(ctx, list, o...)
}

// Patch answers a dry run with the object that stands there, as an API server does;
// the fake client answers nothing.
func (c cached) Patch(ctx context.Context, object client.Object, patch client.Patch, o ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(o)
	if len(options.DryRun) == 0 {
		return c.Client.Patch(ctx, object, patch, o...)
	}
	there, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("no object")
	}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), there)
	object.SetResourceVersion(there.GetResourceVersion())
	return client.IgnoreNotFound(err)
}

type emptyCache struct {
	cache.Cache
	reader client.Reader
}

func (e emptyCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return e.reader.Get(ctx, key, object, o...)
}

func (e emptyCache) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return e.reader.List(ctx, list, o...)
}

func memberCache() *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions.member-1", UID: "owner"},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "member-1", Revision: "r1"},
	}
}

// worked is what came of one MemberCache while the engagement lasts.
func worked(engagedFor context.Context, t *testing.T, api client.Client, mc *v1alpha1.MemberCache) result {
	t.Helper()
	return workedWith(engagedFor, t, api, mc, mc)
}

// hubHolding is a hub whose API server holds one MemberCache, or none.
func hubHolding(t *testing.T, mc *v1alpha1.MemberCache) cluster.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme)
	if mc != nil {
		hub.WithObjects(mc.DeepCopy())
	}
	return lagging{api: hub.Build()}
}

// workedWith is worked while the hub's API server holds another state of the
// MemberCache than its cache.
func workedWith(engagedFor context.Context, t *testing.T, api client.Client, mc, onHub *v1alpha1.MemberCache) result {
	t.Helper()
	c := New(Options{Hub: hubHolding(t, onHub), Typer: applyconfigurations.NewTypeConverter(memberScheme), Clock: clock.RealClock{}})
	c.context = t.Context()
	m := newMember(c, "member-1")
	defer m.stop()
	s := &snapshot{now: time.Now(), cache: mc, inventory: mc.Status.Inventory, engaged: &engagement{context: engagedFor, cluster: lagging{api: api}}}
	if err := m.readChildren(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return m.work(t.Context(), s)
}

func deleted(mc *v1alpha1.MemberCache) *v1alpha1.MemberCache {
	now := metav1.Now()
	mc.DeletionTimestamp, mc.Finalizers = &now, []string{v1alpha1.Finalizer}
	return mc
}

// childOf is the StatefulSet of a MemberCache, marked as ours.
func childOf(t *testing.T, mc *v1alpha1.MemberCache) *appsv1.StatefulSet {
	t.Helper()
	children, problems := render.Render(mc)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, child := range children {
		if child.Intent.GetKind() == render.StatefulSetKind.Kind {
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: child.Intent.GetName(), UID: "set",
				Labels: child.Intent.GetLabels(), Annotations: child.Intent.GetAnnotations(),
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
					APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}}}
		}
	}
	t.Fatal("no StatefulSet")
	return nil
}

func TestAChildThatTheCacheDoesNotShowYetIsRemovedToo(t *testing.T) {
	mc := memberCache()
	child := childOf(t, mc)
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(child).WithReturnManagedFields().Build()

	r := worked(t.Context(), t, api, deleted(mc))

	err := api.Get(t.Context(), client.ObjectKeyFromObject(child), &appsv1.StatefulSet{})
	if !apierrors.IsNotFound(err) && len(r.left) == 0 && r.failure == nil {
		t.Fatal("the StatefulSet is still there, and its MemberCache would be let go")
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("the StatefulSet: %v; left %v, failure %v", err, r.left, r.failure)
	}
}

// A manager that takes over may see a MemberCache on its way out that is long gone,
// while another one of the same owner is there, with children of the same mark.
func TestNoChildIsRemovedForAMemberCacheThatOnlyTheCacheStillShows(t *testing.T) {
	another := memberCache()
	another.UID = "another"
	older, newer := memberCache(), memberCache()
	older.Status.Inventory = []v1alpha1.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Name: "sessions-client", UID: "set"}}
	newer.Generation = 2
	for _, c := range []struct {
		name      string
		cached    *v1alpha1.MemberCache
		onHub     *v1alpha1.MemberCache
		childName string
	}{
		{"it is gone", deleted(memberCache()), nil, "sessions"},
		{"another one is there", deleted(memberCache()), another, "sessions"},
		{"a newer spec wants the child", older, newer, "sessions-client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			child := childOf(t, memberCache())
			child.Name = c.childName
			api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(child).Build()
			r := workedWith(t.Context(), t, api, c.cached, c.onHub)
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
				t.Errorf("the child: %v", err)
			}
			if !r.unknown || r.look == 0 {
				t.Errorf("unknown %t, look again after %s", r.unknown, r.look)
			}
		})
	}
}

func TestAnObjectOfSomebodyElseThatTheCacheDoesNotShowIsRefused(t *testing.T) {
	mc := memberCache()
	theirs := childOf(t, mc)
	theirs.Labels, theirs.Annotations = nil, nil
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(theirs).Build()

	r := worked(t.Context(), t, api, mc)

	if r.failure == nil || r.failure.Reason != v1alpha1.ReasonObjectOfAnother {
		t.Errorf("failure %v, want one with reason %s: the cache holds only what carries our label", r.failure, v1alpha1.ReasonObjectOfAnother)
	}
}

func TestAMemberCacheIsKeptWhileItsChildrenCannotBeListed(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(corev1.Resource("services"), "", errors.New("the right was taken away"))
		},
	}).Build()

	r := worked(t.Context(), t, api, deleted(memberCache()))

	if r.failure == nil || r.failure.Reason != v1alpha1.ReasonForbidden {
		t.Errorf("failure %v, want one with reason %s: nobody knows what is left", r.failure, v1alpha1.ReasonForbidden)
	}
}

func TestAnEngagementThatEndsMeanwhileSaysNothingAboutTheMember(t *testing.T) {
	engaged, end := context.WithCancel(t.Context())
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			end()
			<-ctx.Done()
			return ctx.Err()
		},
	}).Build()

	r := worked(engaged, t, api, memberCache())

	if !r.unknown {
		t.Errorf("failure %v would be shown, of a connection that was closed on purpose", r.failure)
	}
}

func TestThatAnotherSecretIsMissingIsNews(t *testing.T) {
	waiting := func(version, message string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "memcached", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: message}}}}
		return pod
	}
	if unchanged(waiting("1", `secret "x" not found`), waiting("2", `secret "y" not found`)) {
		t.Error("the status would go on naming the Secret that is there by now")
	}
}

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
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// staleCluster is a member whose cache shows nothing yet of what its API server holds.
type staleCluster struct {
	cluster.Cluster
	api client.Client
}

// GetClient returns a client that reads from the cache, as a cluster's client does.
func (l staleCluster) GetClient() client.Client    { return cached{Client: l.api, cache: l.GetCache()} }
func (l staleCluster) GetAPIReader() client.Reader { return l.api }
func (l staleCluster) GetCache() cache.Cache {
	empty := fake.NewClientBuilder().WithScheme(memberScheme)
	for _, kind := range memberqueue.Kinds() {
		empty.WithIndex(kind, memberqueue.CacheField, memberqueue.CacheOf)
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

// Patch answers a dry run with the live object, as an API server does. The fake client
// answers nothing.
func (c cached) Patch(ctx context.Context, object client.Object, patch client.Patch, o ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(o)
	if len(options.DryRun) == 0 {
		return c.Client.Patch(ctx, object, patch, o...)
	}
	live, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("not an object")
	}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), live)
	object.SetResourceVersion(live.GetResourceVersion())
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

// work returns the result of one MemberCache while the engagement lasts.
func work(engagedFor context.Context, t *testing.T, api client.Client, mc *v1alpha1.MemberCache) result {
	t.Helper()
	return workWithHub(engagedFor, t, api, mc, mc)
}

// hubWith returns a hub whose API server holds one MemberCache, or none.
func hubWith(t *testing.T, mc *v1alpha1.MemberCache) cluster.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme)
	if mc != nil {
		hub.WithObjects(mc.DeepCopy())
	}
	return staleCluster{api: hub.Build()}
}

// workWithHub is work while the hub's API server holds another state of the MemberCache
// than its cache.
func workWithHub(engagedFor context.Context, t *testing.T, api client.Client, mc, onHub *v1alpha1.MemberCache) result {
	t.Helper()
	c := &Controller{options: Options{Hub: hubWith(t, onHub), Typer: applyconfigurations.NewTypeConverter(memberScheme), Clock: clock.RealClock{}}}
	m := newMember(c, "member-1", nil)
	e := &memberqueue.Engagement{Context: engagedFor, Cluster: staleCluster{api: api}}
	s := &snapshot{now: time.Now(), cache: mc, state: m.states.get(client.ObjectKeyFromObject(mc)), inventory: mc.Status.Inventory,
		engaged: e, connection: memberqueue.Connection{Engagement: e}}
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

// childOf returns the StatefulSet of a MemberCache, with the owner mark.
func childOf(t *testing.T, mc *v1alpha1.MemberCache) *appsv1.StatefulSet {
	t.Helper()
	rendered, problems := render.Render(mc)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, child := range rendered {
		if child.Intent.GetKind() == children.StatefulSetKind.Kind {
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: child.Intent.GetName(), UID: "set",
				Labels: child.Intent.GetLabels(), Annotations: child.Intent.GetAnnotations(),
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
					APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}}}
		}
	}
	t.Fatal("no StatefulSet")
	return nil
}

func TestDelete_RemovesChildMissingInCache(t *testing.T) {
	mc := memberCache()
	child := childOf(t, mc)
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(child).WithReturnManagedFields().Build()

	r := work(t.Context(), t, api, deleted(mc))

	err := api.Get(t.Context(), client.ObjectKeyFromObject(child), &appsv1.StatefulSet{})
	if !apierrors.IsNotFound(err) && len(r.remaining) == 0 && r.failure == nil {
		t.Fatal("the StatefulSet still exists, and the finalizer of its MemberCache would be released")
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("the StatefulSet: %v; remaining %v, failure %v", err, r.remaining, r.failure)
	}
}

// A new leader's cache may show a terminating MemberCache that no longer exists. Another one
// of the same owner may exist, with children of the same mark.
func TestVerify_KeepsChildrenWhileCacheIsStale(t *testing.T) {
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
		{"the MemberCache is deleted", deleted(memberCache()), nil, "sessions"},
		{"another MemberCache exists", deleted(memberCache()), another, "sessions"},
		{"a newer spec contains the child", older, newer, "sessions-client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			child := childOf(t, memberCache())
			child.Name = c.childName
			api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(child).Build()
			r := workWithHub(t.Context(), t, api, c.cached, c.onHub)
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
				t.Errorf("the child: %v", err)
			}
			if !r.unknown || r.requeue == 0 {
				t.Errorf("unknown %t, requeue after %s", r.unknown, r.requeue)
			}
		})
	}
}

func TestConverge_RefusesObjectOfAnotherMissingInCache(t *testing.T) {
	mc := memberCache()
	foreign := childOf(t, mc)
	foreign.Labels, foreign.Annotations = nil, nil
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithObjects(foreign).Build()

	r := work(t.Context(), t, api, mc)

	if r.failure == nil || r.failure.Reason != v1alpha1.ReasonObjectOfAnother {
		t.Errorf("failure %v, want one with reason %s: the cache holds only objects with the label", r.failure, v1alpha1.ReasonObjectOfAnother)
	}
}

func TestDelete_KeepsMemberCacheWhileChildrenCannotBeListed(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(corev1.Resource("services"), "", errors.New("the right was revoked"))
		},
	}).Build()

	r := work(t.Context(), t, api, deleted(memberCache()))

	if r.failure == nil || r.failure.Reason != v1alpha1.ReasonForbidden {
		t.Errorf("failure %v, want one with reason %s: the remaining children are unknown", r.failure, v1alpha1.ReasonForbidden)
	}
}

func TestWork_IgnoresFailureOfEndedEngagement(t *testing.T) {
	engaged, end := context.WithCancel(t.Context())
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			end()
			<-ctx.Done()
			return ctx.Err()
		},
	}).Build()

	r := work(engaged, t, api, memberCache())

	if !r.unknown {
		t.Errorf("failure %v would be reported for a connection that the hub closed", r.failure)
	}
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
)

func TestRecordResult_RetriesAForbiddenMemberCacheAndNotAnInvalidOne(t *testing.T) {
	membercaches := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "membercaches"}
	for _, c := range []struct {
		name  string
		err   error
		class v1alpha1.ErrorClass
		retry bool
	}{
		{"a quota that may be raised", apierrors.NewForbidden(membercaches, "sessions.eu", nil), v1alpha1.ClassBlocked, true},
		{"a field that only the user can correct", apierrors.NewInvalid(schema.GroupKind{Kind: "MemberCache"}, "sessions.eu", nil), v1alpha1.ClassInvalid, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := sessions("eu")
			mc := desiredMemberCache(cc, "eu")
			p := &plan{summary: status.Input{Members: []status.Member{{Name: "eu", Placed: true}}}}
			err := recordResult(&mc, p, c.err)
			if (err != nil) != c.retry {
				t.Errorf("error %v; retry: want %t", err, c.retry)
			}
			if problem := p.entry("eu").Problem; problem == nil || problem.Class != c.class {
				t.Errorf("problem %+v", problem)
			}
		})
	}
}

func TestRequeue_RepeatsSoonOnlyWithoutAnotherError(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "membercaches"}, "sessions.eu", nil)
	failure := errors.New("quota")
	for _, c := range []struct {
		name string
		err  error
		soon bool
		want string
	}{
		{"no error", nil, false, ""},
		{"a conflict", conflict, true, ""},
		{"a wrapped conflict", fmt.Errorf("write status: %w", conflict), true, ""},
		{"a stale cache and a conflict", errors.Join(errStaleCache, fmt.Errorf("x: %w", conflict)), true, ""},
		{"a conflict and a failure", errors.Join(conflict, errors.Join(failure, conflict)), false, "quota"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := requeue(c.err)
			if (result.RequeueAfter > 0) != c.soon || (err != nil) != (c.want != "") || err != nil && err.Error() != c.want {
				t.Errorf("requeue after %s, error %v", result.RequeueAfter, err)
			}
		})
	}
}

func TestRunWrites_BoundsConcurrencyAndReportsEveryFailureInTheOrderOfNames(t *testing.T) {
	r := newTestReconciler(t)
	const members = 40
	var mu sync.Mutex
	running, most, ran := 0, 0, 0
	var writes []write
	for i := range members {
		mc := &v1alpha1.MemberCache{}
		mc.Name = fmt.Sprintf("sessions.member-%02d", members-i)
		writes = append(writes, write{action: "create", memberCache: mc, done: func(err error) error { return err }, do: func(context.Context) error {
			mu.Lock()
			running++
			ran++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			if i%20 == 0 {
				return errors.New(mc.Name + " failed")
			}
			return nil
		}})
	}
	err := r.runWrites(t.Context(), writes)
	if ran != members || most > r.concurrentWrites || most < 2 {
		t.Errorf("%d of %d writes ran, up to %d at a time; want at most %d", ran, members, most, r.concurrentWrites)
	}
	if want := "sessions.member-20 failed\nsessions.member-40 failed"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestNew_ValidatesItsOptionsAndSetsDefaults(t *testing.T) {
	reader := fake.NewClientBuilder().Build()
	for name, o := range map[string]Options{
		"Client": {APIReader: reader}, "APIReader": {Client: reader}, "Workers": {Client: reader, APIReader: reader, Workers: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is not validated", name)
		}
	}
	r := newTestReconciler(t)
	if r.inventoryNamespace != v1alpha1.InventoryNamespace || r.workers != 8 || r.concurrentWrites != 8 || r.clock == nil {
		t.Errorf("defaults %+v", r)
	}
}

// A manager that ends between the two must not leave the cache without a member.
func TestApply_CreatesBeforeItRemoves(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cc := sessions("z")
	cc.Finalizers = []string{v1alpha1.Finalizer}
	removed, created := desiredMemberCache(cc, "a"), desiredMemberCache(cc, "z")
	var order []string
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&removed).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			order = append(order, "create "+o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			order = append(order, "delete "+o.GetName())
			return c.Delete(ctx, o)
		},
	}).Build()
	r, err := New(Options{Client: api, APIReader: api})
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{create: []*v1alpha1.MemberCache{&created}, remove: []*v1alpha1.MemberCache{&removed},
		summary: status.Input{Members: []status.Member{{Name: "z", Placed: true}}}}
	if err := r.apply(t.Context(), &snapshot{cacheCluster: cc}, p); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create sessions.z", "delete sessions.a"}; !slices.Equal(order, want) {
		t.Errorf("writes %q, want %q", order, want)
	}
}

func newTestReconciler(t *testing.T) *Reconciler {
	t.Helper()
	reader := fake.NewClientBuilder().Build()
	r, err := New(Options{Client: reader, APIReader: reader})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

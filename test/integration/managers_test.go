package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// freezer delays the events of some kinds, as a watch cache that lags does. What
// is delayed comes in order once it thaws.
type freezer struct {
	holds func(runtime.Object) bool

	mu   sync.Mutex
	thaw chan struct{}
}

func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.thaw = make(chan struct{})
}

func (f *freezer) melt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thaw != nil {
		close(f.thaw)
		f.thaw = nil
	}
}

func (f *freezer) frozen() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.thaw
}

func (f *freezer) informer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if f.holds(example) {
		inner := toolscache.ToListerWatcherWithContext(lw)
		lw = &toolscache.ListWatch{ListWithContextFunc: inner.ListWithContext, WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			return f.held(w), nil
		}}
	}
	return toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
}

func (f *freezer) held(w watch.Interface) watch.Interface {
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			var event watch.Event
			var ok bool
			select {
			case event, ok = <-w.ResultChan():
			case <-out.StopChan():
			}
			if !ok {
				return
			}
			if thaw := f.frozen(); thaw != nil {
				select {
				case <-thaw:
				case <-out.StopChan():
					return
				}
			}
			select {
			case events <- event:
			case <-out.StopChan():
				return
			}
		}
	}()
	return out
}

// secondManager runs besides the first one, without an election, until the test ends.
func secondManager(t *testing.T, change func(*manager.Options)) (stop func()) {
	t.Helper()
	second, err := harness.StartManager(lab.Hub.Config, change)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := second.Stop(); err != nil {
			t.Errorf("the second manager: %v", err)
		}
	})
	t.Cleanup(stop)
	if !second.GetLocalManager().GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the second manager's cache did not fill")
	}
	return stop
}

func setLabel(t *testing.T, member, key string, value any) {
	t.Helper()
	profile := &clusterinventory.ClusterProfile{}
	profile.Namespace, profile.Name = v1alpha1.InventoryNamespace, member
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, map[bool]string{true: "null", false: fmt.Sprintf("%q", value)}[value == nil])
	if err := lab.Hub.Client.Patch(context.Background(), profile, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func uidsOf(t *testing.T, ns, name string, members ...string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, member := range members {
		mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "." + member}}
		reload(t, lab.Hub.Client, mc)
		found["MemberCache in "+member] = mc.UID
		for _, child := range childKinds(ns, name) {
			reload(t, lab.Members[member].Client, child)
			found[fmt.Sprintf("%T in %s", child, member)] = child.GetUID()
		}
	}
	return found
}

// Not parallel: its second manager would write in the others' tests too.
func TestManager_WithStaleMemberCacheRemovesNothing(t *testing.T) {
	ns := namespace(t, "lagging")
	f := &freezer{holds: func(o runtime.Object) bool { _, is := o.(*clusterinventory.ClusterProfile); return is }}
	stop := secondManager(t, func(o *manager.Options) { o.HubInformer = f.informer })
	selected := cache(ns, "selected")
	selected.Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lagging": "yes"}}
	create(t, selected)
	setLabel(t, one, "lagging", "yes")
	t.Cleanup(func() { setLabel(t, one, "lagging", nil) })
	isReady(t, selected)

	f.freeze()
	setLabel(t, two, "lagging", "yes")
	t.Cleanup(func() { setLabel(t, two, "lagging", nil) })
	inState(t, selected, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	before := uidsOf(t, ns, "selected", one, two)
	// The second manager sees each of these and the MemberCache, and no member that it
	// would be for.
	for i := range 5 {
		change(t, selected, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = fmt.Sprintf("1.6.%d", 30+i) })
		inState(t, selected, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)
	}
	if diff := cmp.Diff(before, uidsOf(t, ns, "selected", one, two)); diff != "" {
		t.Errorf("something was removed (-before +after):\n%s", diff)
	}
	f.melt()
	isReady(t, selected)
	stop()
	if diff := cmp.Diff(before, uidsOf(t, ns, "selected", one, two)); diff != "" {
		t.Errorf("something was removed (-before +after):\n%s", diff)
	}
	isReady(t, selected)
}

// Not parallel: its second manager would write in the others' tests too.
func TestManager_TwoActiveDoNotConflict(t *testing.T) {
	ns := namespace(t, "twofold")
	stop := secondManager(t, func(*manager.Options) {})
	kept := create(t, cache(ns, "kept", one, two))
	isReady(t, kept)
	before := uidsOf(t, ns, "kept", one, two)
	for i := range 5 {
		brief := create(t, cache(ns, "brief", one, two))
		change(t, kept, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = fmt.Sprintf("1.6.%d", 30+i) })
		isReady(t, brief)
		isReady(t, kept)
		if err := lab.Hub.Client.Delete(t.Context(), brief); err != nil {
			t.Fatal(err)
		}
		gone(t, one, ns, "brief")
		gone(t, two, ns, "brief")
		eventually(t, "brief is deleted", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(brief), brief); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	t.Run("and do not fight", func(t *testing.T) { staysQuiet(t, ns) })
	stop()
	isReady(t, kept)
	if diff := cmp.Diff(before, uidsOf(t, ns, "kept", one, two)); diff != "" {
		t.Errorf("something was recreated (-before +after):\n%s", diff)
	}
}

// Not parallel: it stops the manager.
func TestManager_FinishesWorkAfterStopAtAnyMoment(t *testing.T) {
	ns := namespace(t, "stopped")
	for n, moment := range []time.Duration{0, 15 * time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond} {
		name := fmt.Sprintf("c%d", n)
		after := func(what func()) {
			what()
			select {
			case <-time.After(moment):
			case <-t.Context().Done():
			}
			lab.restartManager(t)
		}
		cc := cache(ns, name, one, two)
		after(func() { create(t, cc) })
		isReady(t, cc)
		after(func() { change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" }) })
		isReady(t, cc)
		after(func() {
			if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
				t.Fatal(err)
			}
		})
		gone(t, one, ns, name)
		gone(t, two, ns, name)
		eventually(t, "it is gone", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}

func TestManager_DeletedAndRecreatedCacheIsTheNewOne(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "phoenix")
	old := create(t, cache(ns, "phoenix", one, two))
	isReady(t, old)
	before := uidsOf(t, ns, "phoenix", one, two)
	if err := lab.Hub.Client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	next := cache(ns, "phoenix", one, two)
	eventually(t, "the name is free", func(ctx context.Context) error { return lab.Hub.Client.Create(ctx, next) })
	isReady(t, next)
	after := uidsOf(t, ns, "phoenix", one, two)
	for what, uid := range after {
		if before[what] == uid {
			t.Errorf("%s is the one of the deleted CacheCluster", what)
		}
	}
	for _, member := range []string{one, two} {
		for _, child := range childKinds(ns, "phoenix") {
			reload(t, lab.Members[member].Client, child)
			if mark := child.GetAnnotations()[v1alpha1.AnnotationOwner]; mark != string(next.UID)+"/"+member {
				t.Errorf("%T in %s has the mark %q", child, member, mark)
			}
		}
	}
}

package memberqueue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// counter is a Member that counts reconciles and accepts every event.
type counter struct {
	mu         sync.Mutex
	reconciles map[string]int
	forgotten  []string
}

func (c *counter) Reconcile(_ context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reconciles[request.Name]++
	return reconcile.Result{}, nil
}
func (c *counter) Trigger(types.NamespacedName, Event) bool { return true }
func (c *counter) Forget(mc *v1alpha1.MemberCache)          { c.forgotten = append(c.forgotten, mc.Name) }
func (c *counter) Connected()                               {}
func (c *counter) ChildDeleted(client.Object)               {}
func (c *counter) OldestEvent() time.Duration               { return 0 }

// take returns the number of reconciles of each MemberCache since the last call.
func (c *counter) take() map[string]int {
	synctest.Wait()
	// The MemberCaches of a returning member are spread over up to a second.
	time.Sleep(2 * longestSpread)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.reconciles
	c.reconciles = map[string]int{}
	return taken
}

// fakeCluster is a hub or a member with informers that the test drives.
type fakeCluster struct {
	cluster.Cluster
	informers *informertest.FakeInformers
	reader    client.Client
}

type fakeCache struct {
	*informertest.FakeInformers
	reader client.Reader
}

func (c fakeCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, o...)
}

func (c fakeCluster) GetCache() cache.Cache       { return fakeCache{c.informers, c.reader} }
func (c fakeCluster) GetAPIReader() client.Reader { return c.reader }
func newFakeCluster(scheme *runtime.Scheme) fakeCluster {
	return fakeCluster{informers: &informertest.FakeInformers{Scheme: scheme}, reader: fake.NewClientBuilder().WithScheme(scheme).Build()}
}

// restart starts a manager whose hub holds three MemberCaches of one member and a
// ClusterProfile with a Reachable condition.
func restart(t *testing.T, reachable metav1.ConditionStatus) (queues *Queues, hub fakeCluster, count *counter) {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(clusterinventory.AddToScheme(scheme))
	hub, count = newFakeCluster(scheme), &counter{reconciles: map[string]int{}}
	queues, err := New(Options{Hub: hub, InventoryNamespace: "inventory", Clock: clock.RealClock{}, NewMember: func(*Queue) Member { return count }})
	if err != nil {
		t.Fatal(err)
	}
	setReachable(t, hub, reachable)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- queues.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	for _, name := range []string{"a.m", "b.m", "c.m"} {
		informer(t, hub, &v1alpha1.MemberCache{}).Add(memberCache(name))
	}
	return queues, hub, count
}

func memberCache(name string) *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1alpha1.MemberCacheSpec{Cluster: "m"}}
}

func profile(reachable metav1.ConditionStatus) *clusterinventory.ClusterProfile {
	p := &clusterinventory.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "m"}}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: reachable, Reason: v1alpha1.ReasonMemberUnreachable}}
	return p
}

func setReachable(t *testing.T, hub fakeCluster, reachable metav1.ConditionStatus) {
	t.Helper()
	_ = hub.reader.Delete(t.Context(), profile(reachable))
	if err := hub.reader.Create(t.Context(), profile(reachable)); err != nil {
		t.Fatal(err)
	}
}

func informer(t *testing.T, c fakeCluster, object client.Object) interface {
	Add(metav1.Object)
	Update(old, object metav1.Object)
	Delete(metav1.Object)
} {
	t.Helper()
	i, err := c.informers.FakeInformerFor(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func wantEach(t *testing.T, when string, got map[string]int, want int) {
	t.Helper()
	for _, name := range []string{"a.m", "b.m", "c.m"} {
		if got[name] != want {
			t.Errorf("%s: %d reconciles of %s, want %d", when, got[name], name, want)
		}
	}
}

func TestQueues_ReconcileEachMemberCacheOnceAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues, hub, count := restart(t, metav1.ConditionTrue)
		informer(t, hub, &clusterinventory.ClusterProfile{}).Add(profile(metav1.ConditionTrue))
		wantEach(t, "while the connection is unknown", count.take(), 0)

		member := newFakeCluster(Scheme())
		engaged, disconnect := context.WithCancel(t.Context())
		if err := queues.Engage(engaged, "m", member); err != nil {
			t.Fatal(err)
		}
		events := memberEvents{queues: queues, member: "m"}
		events.childHandler().OnAdd(child("a"), true)
		events.autoscalerHandler().OnAdd(&autoscalingv2.HorizontalPodAutoscaler{}, true)
		wantEach(t, "after the engagement", count.take(), 1)

		informer(t, member, &corev1.Service{}).Add(child("a"))
		informer(t, member, &corev1.Service{}).Add(child("another hub's"))
		if got := count.take(); len(got) != 1 || got["a.m"] != 1 {
			t.Errorf("after the event of a child: %v", got)
		}
		informer(t, hub, &v1alpha1.MemberCache{}).Add(memberCache("d.m"))
		if got := count.take(); len(got) != 1 || got["d.m"] != 1 {
			t.Errorf("after a new MemberCache: %v", got)
		}
		// The profile is updated before or after the engagement ends.
		disconnect()
		wantEach(t, "while the reason of the disconnection is unknown", count.take(), 0)
		setReachable(t, hub, metav1.ConditionFalse)
		informer(t, hub, &clusterinventory.ClusterProfile{}).Update(profile(metav1.ConditionTrue), profile(metav1.ConditionFalse))
		wantEach(t, "after the disconnection", count.take(), 1)
	})
}

func TestQueues_ReportMemberThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hub, count := restart(t, metav1.ConditionFalse)
		wantEach(t, "after a restart", count.take(), 1)
		// The reason changes.
		informer(t, hub, &clusterinventory.ClusterProfile{}).Update(profile(metav1.ConditionTrue), profile(metav1.ConditionFalse))
		wantEach(t, "after another reason", count.take(), 1)
		if err := hub.reader.Delete(t.Context(), profile(metav1.ConditionFalse)); err != nil {
			t.Fatal(err)
		}
		informer(t, hub, &clusterinventory.ClusterProfile{}).Delete(profile(metav1.ConditionFalse))
		wantEach(t, "after the ClusterProfile was deleted", count.take(), 1)
	})
}

func TestQueues_DropQueueWithLastMemberCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues, hub, count := restart(t, metav1.ConditionFalse)
		for _, name := range []string{"a.m", "b.m", "c.m"} {
			if queues.find("m") == nil {
				t.Fatalf("no queue while %s exists", name)
			}
			informer(t, hub, &v1alpha1.MemberCache{}).Delete(memberCache(name))
		}
		if queues.find("m") != nil {
			t.Error("the queue is kept without a MemberCache and an engagement")
		}
		slices.Sort(count.forgotten)
		if !slices.Equal(count.forgotten, []string{"a.m", "b.m", "c.m"}) {
			t.Errorf("forgotten: %v", count.forgotten)
		}
		synctest.Wait()
	})
}

func child(cache string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: cache, Labels: map[string]string{v1alpha1.LabelCacheCluster: cache}}}
}

//go:build faults

package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// childKinds are the kinds of children.
var childKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("Service"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
}

// hubKinds are the kinds that the manager writes on the hub.
var hubKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("CacheCluster"), v1alpha1.GroupVersion.WithKind("MemberCache"),
}

// witness sees every version of every object with watches of its own.
type witness struct {
	mu        sync.Mutex
	sightings map[string]*sighting
}

// sighting is what was seen in one namespace.
type sighting struct {
	mu sync.Mutex
	// children by member and kind/name: every version, with its time.
	children map[string]map[string][]seen
	cache    *v1alpha1.CacheCluster
	// lives are the UIDs of the CacheCluster, in order.
	lives []string
	// told is every status that the CacheCluster had.
	told []telling
	// on is called with every version of the CacheCluster.
	on func(*v1alpha1.CacheCluster, time.Time)
}

type seen struct {
	at      time.Time
	version string
	text    string
	ready   bool
	deleted bool
}

type telling struct {
	At    time.Time `json:"at"`
	Ready string    `json:"ready"`
	Text  string    `json:"text"`
}

func newWitness(ctx context.Context, f *fleet) (*witness, error) {
	w := &witness{sightings: map[string]*sighting{}}
	watch := func(s *harness.Server, kinds []schema.GroupVersionKind, see func(*unstructured.Unstructured, bool)) error {
		informers, err := cache.New(s.Config, cache.Options{Scheme: harness.Scheme()})
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kind)
			informer, err := informers.GetInformer(ctx, u, cache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			handle := func(object any, deleted bool) {
				if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
					object = tombstone.Obj
				}
				if u, ok := object.(*unstructured.Unstructured); ok {
					see(u, deleted)
				}
			}
			if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(o any) { handle(o, false) }, UpdateFunc: func(_, o any) { handle(o, false) }, DeleteFunc: func(o any) { handle(o, true) },
			}); err != nil {
				return err
			}
		}
		f.Go(informers.Start)
		if !informers.WaitForCacheSync(ctx) {
			return fmt.Errorf("the witness's caches do not fill")
		}
		return nil
	}
	if err := watch(f.Hub, hubKinds, w.seeHub); err != nil {
		return nil, err
	}
	for name, m := range f.Members {
		if err := watch(m.Server, childKinds, func(u *unstructured.Unstructured, deleted bool) { w.seeChild(name, u, deleted) }); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *witness) open(namespace string) *sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &sighting{children: map[string]map[string][]seen{}}
	w.sightings[namespace] = s
	return s
}

func (w *witness) close(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sightings, namespace)
}

func (w *witness) of(u *unstructured.Unstructured) *sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sightings[u.GetNamespace()]
}

func (w *witness) seeChild(member string, u *unstructured.Unstructured, deleted bool) {
	s := w.of(u)
	if s == nil {
		return
	}
	at := time.Now()
	text, ready := Essence(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children[member] == nil {
		s.children[member] = map[string][]seen{}
	}
	key := u.GetKind() + "/" + u.GetName()
	s.children[member][key] = append(s.children[member][key], seen{at, u.GetResourceVersion(), text, ready, deleted})
}

func (w *witness) seeHub(u *unstructured.Unstructured, deleted bool) {
	if u.GetKind() == "CacheCluster" {
		w.seeCache(u, deleted)
		return
	}
	s := w.of(u)
	mc := &v1alpha1.MemberCache{}
	if s == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, mc) != nil {
		return
	}
	at := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := mc.Status.Outcome
	s.told = append(s.told, telling{At: at, Ready: mc.Name, Text: fmt.Sprintf("generation %d observed %d %s/%s %s attempt %d, %d in the inventory, %d of %d ready, %s",
		mc.Generation, mc.Status.ObservedGeneration, mc.Status.State, o.Reason, o.Class, o.Attempt, len(mc.Status.Inventory), mc.Status.ReadyReplicas, mc.Status.Replicas, o.Message)})
}

func (w *witness) seeCache(u *unstructured.Unstructured, deleted bool) {
	s := w.of(u)
	if s == nil {
		return
	}
	at := time.Now()
	cc := &v1alpha1.CacheCluster{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cc) != nil {
		return
	}
	s.mu.Lock()
	s.cache = cc
	if deleted {
		s.cache = nil
	} else if uid := string(cc.UID); len(s.lives) == 0 || s.lives[len(s.lives)-1] != uid {
		s.lives = append(s.lives, uid)
	}
	s.told = append(s.told, tell(cc, at, deleted))
	on := s.on
	s.mu.Unlock()
	if on != nil && !deleted {
		on(cc, at)
	}
}

func tell(cc *v1alpha1.CacheCluster, at time.Time, deleted bool) telling {
	t := telling{At: at, Text: fmt.Sprintf("generation %d observed %d members %s", cc.Generation, cc.Status.ObservedGeneration, cc.Status.Members)}
	if deleted {
		t.Text = "deleted"
		return t
	}
	for _, c := range cc.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			t.Ready = string(c.Status) + "/" + c.Reason
		}
	}
	for i := range cc.Status.Clusters {
		e := &cc.Status.Clusters[i]
		t.Text += fmt.Sprintf("; %s %s/%s %s", e.Name, e.State, e.Reason, e.Message)
	}
	return t
}

// latest is the CacheCluster as it was seen last, or nil.
func (s *sighting) latest() *v1alpha1.CacheCluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache
}

// life numbers the CacheCluster's UID.
func (s *sighting) life(cc *v1alpha1.CacheCluster) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, uid := range s.lives {
		if uid == string(cc.UID) {
			return n
		}
	}
	return len(s.lives)
}

func (s *sighting) tellings() []telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]telling(nil), s.told...)
}

// shows says whether the latest version of a member's child is as wanted.
func (s *sighting) shows(member, key, wanted string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.children[member][key]
	return len(versions) > 0 && versions[len(versions)-1].is(wanted)
}

// showed says whether a version of a member's child before the given one was as
// wanted at any time since a moment; no version means that it is gone. known is false while the given version was not
// seen.
func (s *sighting) showed(member, key, wanted, version string, since time.Time) (was, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.children[member][key]
	for i := len(versions) - 1; i >= 0; i-- {
		v := versions[i]
		if known && versions[i+1].at.Before(since) {
			return false, true
		}
		if known && v.is(wanted) {
			return true, true
		}
		known = known || v.version == version || version == "" && v.deleted
	}
	return false, known
}

func (v seen) is(wanted string) bool { return v.text == wanted && v.ready && !v.deleted }

// count is the number of versions of a member's child since the last forget.
func (s *sighting) count(member, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.children[member][key])
}

// forget drops all versions but the last of each child.
func (s *sighting) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, children := range s.children {
		for key, versions := range children {
			children[key] = versions[len(versions)-1:]
		}
	}
	s.told = s.told[max(0, len(s.told)-1):]
}

// empty says what a member still holds.
func (s *sighting) empty(member string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, versions := range s.children[member] {
		if len(versions) > 0 && !versions[len(versions)-1].deleted {
			return fmt.Errorf("%s holds %s", member, key)
		}
	}
	return nil
}

// texts are the latest versions of a member's children.
func (s *sighting) texts(member string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]string{}
	for key, versions := range s.children[member] {
		if v := versions[len(versions)-1]; !v.deleted {
			found[key] = v.text
		}
	}
	return found
}

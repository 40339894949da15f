//go:build faults

package faults

import (
	"context"
	"fmt"
	"slices"
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

// childKinds are the kinds of a cache's children.
var childKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("Service"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
}

// hubKinds are the kinds that the manager writes on the hub.
var hubKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("CacheCluster"), v1alpha1.GroupVersion.WithKind("MemberCache"),
}

// witness records every version of every object with watches of its own.
type witness struct {
	mu        sync.Mutex
	sightings map[string]*sighting
}

// sighting has the versions of one namespace.
type sighting struct {
	mu sync.Mutex
	// children has every version by member and kind/name.
	children map[string]map[string][]seen
	cache    *v1alpha1.CacheCluster
	// lives has the UIDs of the CacheCluster in order.
	lives []string
	// statuses has every status of the CacheCluster and its MemberCaches.
	statuses []statusReport
	// on is called with every version of the CacheCluster.
	on func(*v1alpha1.CacheCluster, time.Time)
}

type seen struct {
	at      time.Time
	version string
	text    string
	ready   bool
	deleted bool
	// labelled reports whether the child has the label of its CacheCluster.
	labelled bool
}

type statusReport struct {
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
			return fmt.Errorf("the witness's caches did not sync")
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
	s.children[member][key] = append(s.children[member][key], seen{at, u.GetResourceVersion(), text, ready, deleted, u.GetLabels()[v1alpha1.LabelCacheCluster] != ""})
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
	s.statuses = append(s.statuses, statusReport{At: at, Ready: mc.Name, Text: fmt.Sprintf("generation %d observed %d %s/%s %s attempt %d, %d in the inventory, %d of %d ready, %s",
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
	s.statuses = append(s.statuses, reportOf(cc, at, deleted))
	on := s.on
	s.mu.Unlock()
	if on != nil && !deleted {
		on(cc, at)
	}
}

// reportOf returns the status of a CacheCluster in short.
func reportOf(cc *v1alpha1.CacheCluster, at time.Time, deleted bool) statusReport {
	t := statusReport{At: at, Text: fmt.Sprintf("generation %d observed %d members %s", cc.Generation, cc.Status.ObservedGeneration, cc.Status.Members)}
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

// latest returns the latest version of the CacheCluster, or nil.
func (s *sighting) latest() *v1alpha1.CacheCluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache
}

// life returns the position of the CacheCluster's UID among those of its name.
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

func (s *sighting) reports() []statusReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]statusReport(nil), s.statuses...)
}

// shows reports whether the latest version of a member's child equals wanted.
func (s *sighting) shows(member, key, wanted string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.children[member][key]
	return len(versions) > 0 && versions[len(versions)-1].is(wanted)
}

// showed reports whether a version of a member's child before the given one equals wanted
// at any time since a time. No version means that the child is gone. known is false until
// the watch shows the given version.
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

// labelled returns the children in a member that have the label of their CacheCluster.
func (s *sighting) labelled(member string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key, versions := range s.children[member] {
		if v := versions[len(versions)-1]; v.labelled && !v.deleted {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (v seen) is(wanted string) bool { return v.text == wanted && v.ready && !v.deleted }

// count returns the number of versions of a member's child since the last forget.
func (s *sighting) count(member, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.children[member][key])
}

// forget drops all versions of each child except the last.
func (s *sighting) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, children := range s.children {
		for key, versions := range children {
			children[key] = versions[len(versions)-1:]
		}
	}
	s.statuses = s.statuses[max(0, len(s.statuses)-1):]
}

// empty returns an error that names a child of the member.
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

// texts returns the latest versions of a member's children.
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

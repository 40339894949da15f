package apply

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Writes remembers what was just written to one member until the cache has it,
// so that the next reconcile never takes its own past for drift. It is safe for
// use by several goroutines, and losing it costs at most an apply that changes
// nothing.
type WriteCache struct {
	mu      sync.Mutex
	written map[place]metav1.Object
	known   map[lesson]*drift.Fields
	unfit   map[place]unfit
	tried   map[place]tried
	// claimed are children that somebody works on, each until the channel closes.
	claimed map[place]chan struct{}
}

// unfit is an object that was not taken over in the version that was looked at.
type unfit struct {
	lesson
	version string
	why     *failure.Failure
}

type place struct {
	Key
	namespace string
}

type lesson struct{ uid, hash string }

// NewWriteCache remembers nothing yet.
func NewWriteCache() *WriteCache {
	return &WriteCache{written: map[place]metav1.Object{}, known: map[lesson]*drift.Fields{}, unfit: map[place]unfit{}, tried: map[place]tried{}, claimed: map[place]chan struct{}{}}
}

// claim waits until nobody else works on one of these children, and keeps others from
// it until it is released. It does not wait longer than ctx.
func (r *WriteCache) claim(ctx context.Context, namespace string, steps []Step) (release func(), late *failure.Failure) {
	for {
		mine, busy := r.tryClaim(namespace, steps)
		if busy == nil {
			return func() { r.release(mine) }, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError,
				Message: "another CacheCluster that has a child of the same name is being worked on"}
		}
	}
}

// tryClaim claims all or nothing; then it gives what to wait for.
func (r *WriteCache) tryClaim(namespace string, steps []Step) (mine, busy chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range steps {
		if other, ok := r.claimed[place{steps[i].Key(), namespace}]; ok {
			return nil, other
		}
	}
	mine = make(chan struct{})
	for i := range steps {
		r.claimed[place{steps[i].Key(), namespace}] = mine
	}
	return mine, nil
}

func (r *WriteCache) release(mine chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.claimed, func(_ place, held chan struct{}) bool { return held == mine })
	close(mine)
}

// Put remembers what the API server answered.
func (r *WriteCache) Put(key Key, namespace string, object metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[place{key, namespace}] = object
}

// Refresh gives the newer of what the cache holds (or nil) and what was written,
// and forgets what the cache has caught up with.
func (r *WriteCache) Refresh(key Key, namespace string, cached metav1.Object) metav1.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{key, namespace}
	written, ok := r.written[at]
	if !ok {
		return cached
	}
	if cached == nil {
		return nil
	}
	if older(cached, written) {
		return written
	}
	delete(r.written, at)
	return cached
}

// Latest gives the newer of what a reconcile has seen (or nil) and what was
// written. It forgets nothing: what was seen may be what Refresh gave, and says
// nothing about the cache.
func (r *WriteCache) Latest(key Key, namespace string, seen metav1.Object) metav1.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	written, ok := r.written[place{key, namespace}]
	switch {
	case ok && (seen == nil || older(seen, written)):
		return written
	default:
		return seen
	}
}

// Pending says that the cache has not shown yet what was written or looked up of one of
// these children.
func (r *WriteCache) Pending(namespace string, inventory []v1alpha1.InventoryEntry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(inventory, func(e v1alpha1.InventoryEntry) bool {
		_, ok := r.written[place{keyOf(e), namespace}]
		return ok
	})
}

// older says that one is an earlier version of the same object as other, or its
// predecessor: the versions of a kind are in order also from one object to the next.
func older(one, other metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(one.GetResourceVersion(), other.GetResourceVersion())
	return err == nil && order < 0
}

// Reset: a cache that was filled just now is behind nothing that was written.
func (r *WriteCache) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.written)
}

// absent notes that the API server itself shows no such object.
func (r *WriteCache) absent(key Key, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, place{key, namespace})
}

// Learn notes which fields the member did not put under our name although the
// apply succeeded: an API server of another version may keep a set of another
// shape. Without this, such a field would be drift for ever.
func (r *WriteCache) Learn(d Desired, applied metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := lesson{string(applied.GetUID()), d.Hash}
	for l := range r.known {
		// Of an intent that is over.
		if l.uid == at.uid && l.hash != at.hash && l.hash != settledForeign {
			delete(r.known, l)
		}
	}
	if missing := drift.Missing(d.Wanted, applied); !missing.Empty() {
		r.known[at] = missing
	} else {
		delete(r.known, at)
	}
}

// Known implements Memory.
func (r *WriteCache) Known(uid, hash string) *drift.Fields {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[lesson{uid, hash}]
}

// refuse notes why an object cannot be taken over, and refused tells it again while
// neither the object nor the intent has changed.
func (r *WriteCache) refuse(key Key, live metav1.Object, hash string, why *failure.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfit[place{key, live.GetNamespace()}] = unfit{lesson{string(live.GetUID()), hash}, live.GetResourceVersion(), why}
}

func (r *WriteCache) refused(key Key, live metav1.Object, hash string) *failure.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{key, live.GetNamespace()}
	known, ok := r.unfit[at]
	if !ok || known.lesson != (lesson{string(live.GetUID()), hash}) || known.version != live.GetResourceVersion() {
		delete(r.unfit, at)
		return nil
	}
	return known.why
}

// Forget drops what is known of an object that was deleted.
func (r *WriteCache) Forget(key Key, namespace string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{key, namespace}
	if written, ok := r.written[at]; ok && written.GetUID() == uid {
		delete(r.written, at)
	}
	for l := range r.known {
		if l.uid == string(uid) {
			delete(r.known, l)
		}
	}
}

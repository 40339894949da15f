// Package expectations detects a stale cache: one that does not contain the last write of
// the controller yet. A reconcile of a stale object computes an outdated status, and the API
// server refuses to write it. The event of the last write starts the next reconcile, so that
// a controller can skip the stale one.
//
// The package stores versions only and deletes each one when the cache contains it. After a
// restart the API server may refuse one write.
package expectations

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes stores the resource version of the last write of each object, by UID. The zero
// value is empty. Writes is safe for concurrent use.
type Writes struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// Record stores the version of an object from the response of the API server to a write.
func (w *Writes) Record(object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.UID]string{}
	}
	w.versions[object.GetUID()] = object.GetResourceVersion()
}

// IsStale reports whether a cached object is older than its last write.
func (w *Writes) IsStale(cached metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.versions[cached.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if err == nil && order < 0 {
		return true
	}
	delete(w.versions, cached.GetUID())
	return false
}

// IsLastWrite reports whether an object has the version of its last write. The event of
// such an object needs no reconcile.
func (w *Writes) IsLastWrite(object metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.versions[object.GetUID()]
	return ok && written == object.GetResourceVersion()
}

// Forget deletes the version of a deleted object.
func (w *Writes) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, uid)
}

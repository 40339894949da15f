// Package expectations tells a controller that its cache does not show its own last
// write yet. A reconcile that works on such an old object computes an old answer
// and writes it against a newer version, which the API server refuses; skipping
// it costs nothing, because the event of the write is on the way and asks again.
//
// It holds versions only, forgets each once the cache has caught up, and losing
// it costs at most one refused write.
package expectations

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes remembers the version of the last write of each object, by UID. The zero
// value remembers nothing, and it is safe for use by several goroutines.
type Writes struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// Wrote remembers an object as the API server answered it.
func (w *Writes) Wrote(object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.UID]string{}
	}
	w.versions[object.GetUID()] = object.GetResourceVersion()
}

// Behind says that a cached object is older than the last write to it.
func (w *Writes) Behind(cached metav1.Object) bool {
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

// Own says that an object is as the last write to it left it: whoever wrote it
// learns nothing from its event.
func (w *Writes) Own(object metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.versions[object.GetUID()]
	return ok && written == object.GetResourceVersion()
}

// Forget drops what is known of an object that is gone.
func (w *Writes) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, uid)
}

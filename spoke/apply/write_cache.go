package apply

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// WriteCache holds the writes to one member that the informer cache does not show yet. So a
// reconcile does not mistake its own write for drift. It also holds what the writes
// taught. It is safe for concurrent use. Its loss costs at most an apply that changes
// nothing.
type WriteCache struct {
	claims claims

	mu sync.Mutex
	// written are the API server's answers to writes and live reads.
	written map[childKey]metav1.Object
	// learned is what the writes to each object taught. Its loss costs one apply.
	learned map[types.UID]Learned
	// mismatches are refused takeovers. The loss of one costs a dry run.
	mismatches map[childKey]takeoverMismatch
	// unconfirmed are corrections whose answer was lost: the member may have carried them
	// out, and then no later read shows the drift. The loss of one costs its report.
	unconfirmed map[childKey]unconfirmedChange
}

// takeoverMismatch is a takeover that was refused for one version of the object and one
// intent.
type takeoverMismatch struct {
	uid           types.UID
	version, hash string
	failure       *failure.Failure
}

// unconfirmedChange is a correction whose answer was lost, with the time of the event that
// led to its first attempt.
type unconfirmedChange struct {
	change Change
	since  time.Time
}

// NewWriteCache returns an empty cache.
func NewWriteCache() *WriteCache {
	return &WriteCache{written: map[childKey]metav1.Object{}, learned: map[types.UID]Learned{},
		mismatches: map[childKey]takeoverMismatch{}, unconfirmed: map[childKey]unconfirmedChange{}}
}

// Store records an object that the API server returned.
func (c *WriteCache) Store(key Key, namespace string, object metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[childKey{key, namespace}] = object
}

// Refresh returns the newer of the informer cache's object and the written one. It removes
// the written object once the informer cache shows it. For a nil object it returns nil.
func (c *WriteCache) Refresh(key Key, namespace string, cached metav1.Object) metav1.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := childKey{key, namespace}
	written, ok := c.written[child]
	if !ok {
		return cached
	}
	if cached == nil {
		return nil
	}
	if older(cached, written) {
		return written
	}
	delete(c.written, child)
	return cached
}

// Latest returns the newer of an object that a reconcile read, or nil, and the written one.
// It removes nothing: the object may come from Refresh, and then it does not show what the
// informer cache holds.
func (c *WriteCache) Latest(key Key, namespace string, read metav1.Object) metav1.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	written, ok := c.written[childKey{key, namespace}]
	switch {
	case ok && (read == nil || older(read, written)):
		return written
	default:
		return read
	}
}

// Pending reports whether the informer cache does not show a write to one of the children
// yet.
func (c *WriteCache) Pending(namespace string, inventory []v1alpha1.InventoryEntry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(inventory, func(e v1alpha1.InventoryEntry) bool {
		_, ok := c.written[childKey{keyOf(e), namespace}]
		return ok
	})
}

// older reports whether one is an earlier version of other, or of its predecessor: resource
// versions are ordered within a kind, not only within an object.
func older(one, other metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(one.GetResourceVersion(), other.GetResourceVersion())
	return err == nil && order < 0
}

// Reset removes the written objects. It is called for a new informer cache, whose initial
// list shows every earlier write.
func (c *WriteCache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.written)
}

// Forget removes what is known of an object that was deleted.
func (c *WriteCache) Forget(key Key, namespace string, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := childKey{key, namespace}
	if written, ok := c.written[child]; ok && written.GetUID() == uid {
		delete(c.written, child)
	}
	delete(c.learned, uid)
}

// Memory returns what earlier writes to the live objects taught. The result is a value that
// later writes do not change.
func (c *WriteCache) Memory(live Live) Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	var memory Memory
	for _, object := range live {
		if object == nil {
			continue
		}
		if learned, ok := c.learned[object.GetUID()]; ok {
			if memory == nil {
				memory = Memory{}
			}
			memory[object.GetUID()] = learned
		}
	}
	return memory
}

// forgetWrite removes the written object of a child that the API server does not hold.
func (c *WriteCache) forgetWrite(key Key, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, childKey{key, namespace})
}

// learn records which fields the member did not put under the hub's field manager although
// the apply succeeded. An API server of another version may record a field set of another
// shape. Without this, such a field would be corrected at every reconcile.
func (c *WriteCache) learn(d *Desired, applied metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	learned := c.learned[applied.GetUID()]
	learned.Hash, learned.Unowned = d.Hash, nil
	if missing := drift.UnownedFields(d.Fields, applied); !missing.Empty() {
		learned.Unowned = missing
	}
	c.storeLearned(applied.GetUID(), learned)
}

// learnForeign records foreign fields that the API server set again after their removal.
func (c *WriteCache) learnForeign(uid types.UID, fields *drift.Fields) {
	if fields.Empty() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	learned := c.learned[uid]
	if learned.Foreign != nil {
		fields = fields.Union(learned.Foreign)
	}
	learned.Foreign = fields
	c.storeLearned(uid, learned)
}

func (c *WriteCache) storeLearned(uid types.UID, learned Learned) {
	if learned.Unowned == nil && learned.Foreign == nil {
		delete(c.learned, uid)
		return
	}
	c.learned[uid] = learned
}

// storeMismatch records why an object was not taken over.
func (c *WriteCache) storeMismatch(key Key, live metav1.Object, hash string, f *failure.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mismatches[childKey{key, live.GetNamespace()}] = takeoverMismatch{live.GetUID(), live.GetResourceVersion(), hash, f}
}

// mismatch returns why an object was not taken over, or nil if the object or the intent
// changed since.
func (c *WriteCache) mismatch(key Key, live metav1.Object, hash string) *failure.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := childKey{key, live.GetNamespace()}
	known, ok := c.mismatches[child]
	if !ok || known.uid != live.GetUID() || known.version != live.GetResourceVersion() || known.hash != hash {
		delete(c.mismatches, child)
		return nil
	}
	return known.failure
}

// storeUnconfirmed records a correction whose answer was lost. The time of the first attempt
// stays.
func (c *WriteCache) storeUnconfirmed(key Key, namespace string, change Change, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := childKey{key, namespace}
	if earlier, ok := c.unconfirmed[child]; ok {
		since = earlier.since
	}
	c.unconfirmed[child] = unconfirmedChange{change, since}
}

// takeUnconfirmed returns and removes the unconfirmed correction of a child, with the time
// of the event that led to its first attempt.
func (c *WriteCache) takeUnconfirmed(key Key, namespace string) (change Change, since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := childKey{key, namespace}
	u, ok := c.unconfirmed[child]
	delete(c.unconfirmed, child)
	return u.change, u.since, ok
}

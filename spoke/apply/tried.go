package apply

import "time"

// tried is a repair that was sent and not confirmed: its answer may have been lost
// after the member carried it out. Nothing of it is to be seen in the member then.
type tried struct {
	change Change
	since  time.Time
}

// Try remembers a repair whose answer did not come, from the first time on.
func (r *WriteCache) Try(key Key, namespace string, change Change, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{key, namespace}
	if earlier, ok := r.tried[at]; ok {
		since = earlier.since
	}
	r.tried[at] = tried{change, since}
}

// Tried gives the repair that was not confirmed, and since when it was due, and
// forgets it.
func (r *WriteCache) Tried(key Key, namespace string) (change Change, since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{key, namespace}
	t, ok := r.tried[at]
	delete(r.tried, at)
	return t.change, t.since, ok
}

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// mark is something that becomes true of an object in a cluster and can be seen by
// whoever watches.
type mark struct {
	cluster, object string
	what            fact
}

type fact string

const (
	present fact = "present" // a StatefulSet is there
	covered fact = "covered" // and so is the last child that is applied
	ready   fact = "ready"   // a StatefulSet is at rest; a CacheCluster is Ready=True
	unknown fact = "unknown" // a CacheCluster is Ready=Unknown
	gone    fact = "gone"
)

// marks notes when each came true first since it was last forgotten, and when
// anything at all happened in a cluster.
type marks struct {
	mu      sync.Mutex
	at      map[mark]time.Time
	last    map[string]time.Time
	changed chan struct{}
}

func newMarks() *marks {
	return &marks{at: map[mark]time.Time{}, last: map[string]time.Time{}, changed: make(chan struct{})}
}

// note takes an event's facts; those that do not hold may come true again.
func (m *marks) note(cluster, object string, now time.Time, facts map[fact]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[cluster] = now
	for what, holds := range facts {
		key := mark{cluster, object, what}
		if _, noted := m.at[key]; !holds {
			delete(m.at, key)
		} else if !noted {
			m.at[key] = now
		}
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// lastEvent in any of the clusters.
func (m *marks) lastEvent(clusters ...string) (last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range clusters {
		if m.last[c].After(last) {
			last = m.last[c]
		}
	}
	return last
}

// await returns when every mark is there, with the time of the last one.
func (m *marks) await(ctx context.Context, wanted ...mark) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		m.mu.Lock()
		var missing *mark
		last = time.Time{}
		for i := range wanted {
			at, there := m.at[wanted[i]]
			if !there {
				missing = &wanted[i]
				break
			}
			if at.After(last) {
				last = at
			}
		}
		changed := m.changed
		m.mu.Unlock()
		if missing == nil {
			return last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return last, fmt.Errorf("waiting for %s in %s to be %s: %w", missing.object, missing.cluster, missing.what, context.Cause(ctx))
		}
	}
}

// forget an object.
func (m *marks) forget(object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.at, func(key mark, _ time.Time) bool { return key.object == object })
}

// in gives one mark for each cluster.
func in(clusters []*cluster, object string, what fact) (all []mark) {
	for _, c := range clusters {
		all = append(all, mark{c.name, object, what})
	}
	return all
}

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// milestone is a fact about an object in a cluster that a watch can show.
type milestone struct {
	cluster, object string
	fact            fact
}

type fact string

const (
	// present: a StatefulSet exists.
	present fact = "present"
	// complete: the child that is applied last exists.
	complete fact = "complete"
	// ready: a StatefulSet has settled, or a MemberCache or CacheCluster is Ready=True.
	ready fact = "ready"
	// unknown: a CacheCluster is Ready=Unknown.
	unknown fact = "unknown"
	// deleted: a CacheCluster was deleted.
	deleted fact = "deleted"
)

// timeline records when each milestone became true, and when the last event of each
// cluster arrived. It is safe for concurrent use.
type timeline struct {
	mu      sync.Mutex
	reached map[milestone]time.Time
	last    map[string]time.Time
	changed chan struct{}
}

func newTimeline() *timeline {
	return &timeline{reached: map[milestone]time.Time{}, last: map[string]time.Time{}, changed: make(chan struct{})}
}

// record records the facts that an event shows. A fact that is false now may become
// true again; the later time then counts.
func (t *timeline) record(cluster, object string, now time.Time, facts map[fact]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[cluster] = now
	for fact, isTrue := range facts {
		key := milestone{cluster, object, fact}
		if _, recorded := t.reached[key]; !isTrue {
			delete(t.reached, key)
		} else if !recorded {
			t.reached[key] = now
		}
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// lastEvent returns the time of the last event in any of the clusters.
func (t *timeline) lastEvent(clusters ...string) (last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range clusters {
		if t.last[c].After(last) {
			last = t.last[c]
		}
	}
	return last
}

// await waits until every milestone is reached and returns the time of the last one. It
// fails after patience without any event: a large burst takes longer than that.
func (t *timeline) await(ctx context.Context, wanted ...milestone) (time.Time, error) {
	for {
		last, missing, changed := t.check(wanted)
		if missing == nil {
			return last, nil
		}
		var err error
		select {
		case <-changed:
			continue
		case <-time.After(patience):
			err = fmt.Errorf("no event for %s", patience)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		return last, fmt.Errorf("waiting for %s in %s to be %s: %w", missing.object, missing.cluster, missing.fact, err)
	}
}

// check returns the time of the last milestone, or one that is missing and the channel
// that the next event closes.
func (t *timeline) check(wanted []milestone) (last time.Time, missing *milestone, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range wanted {
		reached, ok := t.reached[wanted[i]]
		if !ok {
			return time.Time{}, &wanted[i], t.changed
		}
		if reached.After(last) {
			last = reached
		}
	}
	return last, nil, t.changed
}

// forget removes the milestones of a CacheCluster, its children and its MemberCaches.
func (t *timeline) forget(cache string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.reached, func(key milestone, _ time.Time) bool {
		return key.object == cache || strings.HasPrefix(key.object, cache+".")
	})
}

// milestonesIn returns one milestone for each cluster.
func milestonesIn(clusters []*cluster, object string, fact fact) (all []milestone) {
	for _, c := range clusters {
		all = append(all, milestone{c.name, object, fact})
	}
	return all
}

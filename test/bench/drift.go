package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// warmUp is how often each side is tried in each member before it counts.
const warmUp = 3

// spotted is one StatefulSet under one long watch.
type spotted struct {
	*cluster
	name  string
	watch watch.Interface
	last  *appsv1.StatefulSet
}

func spot(ctx context.Context, c *cluster, name string) (*spotted, error) {
	w, err := c.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: name})
	return &spotted{cluster: c, name: name, watch: w}, err
}

// until gives the time at which the watch told of a StatefulSet that is so.
func (s *spotted) until(ctx context.Context, so func(*appsv1.StatefulSet) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case e, open := <-s.watch.ResultChan():
			if !open || e.Type == watch.Error {
				return time.Time{}, fmt.Errorf("the watch ended: %v", e.Object)
			}
			if set, ok := e.Object.(*appsv1.StatefulSet); ok {
				if s.last = set; so(set) {
					return time.Now(), nil
				}
			}
		}
	}
}

// rest waits until the last trial is over for everybody.
func (s *spotted) rest(ctx context.Context) error {
	over := func(set *appsv1.StatefulSet) bool { return atRest(set) && *set.Spec.Replicas == replicas }
	if s.last == nil || !over(s.last) {
		if _, err := s.until(ctx, over); err != nil {
			return fmt.Errorf("wait until it is at rest: %w", err)
		}
	}
	// Time for what follows on the hub.
	return pause(ctx, 100*time.Millisecond)
}

// drift changes replicas and gives how long the wrong object could be seen: from
// the event that tells of it to the event that tells of the right one.
func (s *spotted) drift(ctx context.Context, by string) (time.Duration, error) {
	if err := s.rest(ctx); err != nil {
		return 0, err
	}
	const wrong = replicas + 1
	sent := make(chan error, 1)
	go func() { sent <- s.scale(ctx, wrong, by) }()
	event, err := s.until(ctx, has(wrong))
	if err != nil {
		return 0, fmt.Errorf("wait for replicas %d: %w", wrong, err)
	}
	right, err := s.until(ctx, has(replicas))
	if err != nil {
		return 0, fmt.Errorf("wait for replicas %d: %w", replicas, err)
	}
	return right.Sub(event), <-sent
}

// pair is a cache's StatefulSet and the floor's twin of it, in one member.
type pair struct{ ours, floors *spotted }

// measureDrift lets the same field of two like objects drift in turn, one held by
// the manager and one by the floor, in each member.
func (f *fleet) measureDrift(ctx context.Context) error {
	cache, twin := cacheName("cache", 0), cacheName("floor", 0)
	fl, err := f.startFloor(ctx, cache, twin)
	if err != nil {
		return err
	}
	pairs, err := f.spotPairs(ctx, cache, twin)
	if err == nil {
		err = f.compare(ctx, pairs, fl)
	}
	for _, p := range pairs {
		p.ours.watch.Stop()
		p.floors.watch.Stop()
	}
	if stopped := fl.stop(); err == nil {
		err = stopped
	}
	return err
}

func (f *fleet) spotPairs(ctx context.Context, cache, twin string) (pairs []pair, err error) {
	for _, c := range f.members() {
		var p pair
		if p.ours, err = spot(ctx, c, cache); err != nil {
			return pairs, err
		}
		if p.floors, err = spot(ctx, c, twin); err != nil {
			return pairs, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func (f *fleet) compare(ctx context.Context, pairs []pair, fl *floor) error {
	n := 0
	// Each drift is by somebody else: one who comes again and again is in a fight, and
	// the manager slows down.
	trial := func(s *spotted) (time.Duration, error) {
		n++
		took, err := s.drift(ctx, fmt.Sprintf("bench-%d", n))
		if err != nil {
			err = fmt.Errorf("%s: drift of %s: %w", s.cluster, s.name, err)
		}
		return took, err
	}
	step("warming up")
	for range warmUp {
		for _, p := range pairs {
			for _, s := range []*spotted{p.ours, p.floors} {
				if _, err := trial(s); err != nil {
					return err
				}
			}
		}
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	floorBefore := fl.patched.Load()
	var ours, floors []time.Duration
	for i := range f.trials {
		p := pairs[i%len(pairs)]
		order := []*spotted{p.ours, p.floors}
		// The second of two is never always the same one.
		if i/len(pairs)%2 == 1 {
			order = []*spotted{p.floors, p.ours}
		}
		for _, s := range order {
			took, err := trial(s)
			if err != nil {
				return err
			}
			if s == p.ours {
				ours = append(ours, took)
			} else {
				floors = append(floors, took)
			}
		}
		if (i+1)%20 == 0 {
			step("drift %d of %d", i+1, f.trials)
		}
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.minus(before)
	// Both sides' drifts, and the floor's repairs.
	used.Members = used.Members.without("PATCH statefulsets", 2*f.trials+int(fl.patched.Load()-floorBefore))
	r := &f.report
	r.DriftRepair, r.Floor = latencies(ours), latencies(floors)
	r.Ratios = &ratios{DriftP50: ratio(r.DriftRepair.P50, r.Floor.P50), DriftP90: ratio(r.DriftRepair.P90, r.Floor.P90)}
	r.Writes.MemberPerRepair = used.Members.writes() / float64(f.trials)
	r.Writes.HubPerRepair = used.Hub.writes() / float64(f.trials)
	r.PerOperation["repair"] = used.per(f.trials)
	return nil
}

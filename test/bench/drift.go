package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// warmUpTrials of each StatefulSet in each member do not count.
const warmUpTrials = 3

// target is one StatefulSet with a watch of its own.
type target struct {
	*cluster
	name  string
	watch watch.Interface
	last  *appsv1.StatefulSet
}

func watchTarget(ctx context.Context, c *cluster, name string) (*target, error) {
	w, err := c.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: name})
	return &target{cluster: c, name: name, watch: w}, err
}

// await waits until the watch shows a StatefulSet that meets the condition, and returns
// the time of that event.
func (t *target) await(ctx context.Context, condition func(*appsv1.StatefulSet) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case e, open := <-t.watch.ResultChan():
			if !open || e.Type == watch.Error {
				return time.Time{}, fmt.Errorf("the watch ended: %v", e.Object)
			}
			if set, ok := e.Object.(*appsv1.StatefulSet); ok {
				if t.last = set; condition(set) {
					return time.Now(), nil
				}
			}
		}
	}
}

// awaitSettled waits until every controller has finished with the last trial.
func (t *target) awaitSettled(ctx context.Context) error {
	finished := func(set *appsv1.StatefulSet) bool { return hasSettled(set) && hasReplicas(replicas)(set) }
	if t.last == nil || !finished(t.last) {
		if _, err := t.await(ctx, finished); err != nil {
			return fmt.Errorf("waiting for the StatefulSet to settle: %w", err)
		}
	}
	// The manager's report on the hub follows.
	return pause(ctx, 100*time.Millisecond)
}

// drift changes replicas and returns how long the watch showed the wrong value: from
// the event with the wrong value to the event with the right one.
func (t *target) drift(ctx context.Context, fieldManager string) (time.Duration, error) {
	if err := t.awaitSettled(ctx); err != nil {
		return 0, err
	}
	const wrong = replicas + 1
	sent := make(chan error, 1)
	go func() { sent <- t.scale(ctx, wrong, fieldManager) }()
	drifted, err := t.await(ctx, hasReplicas(wrong))
	if err != nil {
		return 0, fmt.Errorf("waiting for replicas %d: %w", wrong, err)
	}
	corrected, err := t.await(ctx, hasReplicas(replicas))
	if err != nil {
		return 0, fmt.Errorf("waiting for replicas %d: %w", replicas, err)
	}
	return corrected.Sub(drifted), <-sent
}

func hasReplicas(n int32) func(*appsv1.StatefulSet) bool {
	return func(set *appsv1.StatefulSet) bool { return *set.Spec.Replicas == n }
}

// scale patches replicas as another field manager.
func (t *target) scale(ctx context.Context, n int32, fieldManager string) error {
	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = namespace, t.name
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
	return t.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
}

// pair is a cache's StatefulSet and the floor's copy of it in the same member.
type pair struct{ managed, copied *target }

func (p pair) stop() {
	for _, t := range []*target{p.managed, p.copied} {
		if t != nil && t.watch != nil {
			t.watch.Stop()
		}
	}
}

// comparison holds the correction times of the manager and of the floor.
type comparison struct {
	manager, floor []time.Duration
	// used is the manager's cost of all trials.
	used operation
}

func (c comparison) ratios() ratios {
	manager, floor := latencies(c.manager), latencies(c.floor)
	return ratios{DriftP50: ratio(manager.P50, floor.P50), DriftP90: ratio(manager.P90, floor.P90)}
}

// measureDrift compares the manager's corrections with the floor's.
func (f *fleet) measureDrift(ctx context.Context) error {
	c, err := f.compareWithFloor(ctx, cacheName("cache", 0), f.trials)
	if err != nil {
		return err
	}
	r, ratios := &f.report, c.ratios()
	r.DriftRepair, r.Floor, r.Ratios = latencies(c.manager), latencies(c.floor), &ratios
	r.Writes.MemberPerRepair = c.used.Members.writes() / float64(f.trials)
	r.Writes.HubPerRepair = c.used.Hub.writes() / float64(f.trials)
	r.PerOperation["repair"] = c.used.divide(f.trials)
	return nil
}

// compareWithFloor changes the same field of two equal StatefulSets in turn. The
// manager corrects the one of the cache, and the floor corrects the copy.
func (f *fleet) compareWithFloor(ctx context.Context, cache string, trials int) (c comparison, err error) {
	floorName := cacheName("floor", 0)
	fl, err := f.startFloor(ctx, cache, floorName)
	if err != nil {
		return c, err
	}
	defer func() {
		if stopErr := fl.stop(); err == nil {
			err = stopErr
		}
	}()
	pairs, err := f.watchPairs(ctx, cache, floorName)
	defer func() {
		for _, p := range pairs {
			p.stop()
		}
	}()
	if err != nil {
		return c, err
	}
	return f.compare(ctx, pairs, fl, trials)
}

func (f *fleet) watchPairs(ctx context.Context, cache, floorName string) (pairs []pair, err error) {
	for _, c := range f.members() {
		var p pair
		if p.managed, err = watchTarget(ctx, c, cache); err == nil {
			p.copied, err = watchTarget(ctx, c, floorName)
		}
		pairs = append(pairs, p)
		if err != nil {
			return pairs, err
		}
	}
	return pairs, nil
}

// drifter changes targets under a new field manager each time. A field manager that
// repeats a change is a conflict, which the manager answers more slowly.
type drifter struct{ n int }

func (d *drifter) drift(ctx context.Context, t *target) (time.Duration, error) {
	d.n++
	took, err := t.drift(ctx, fmt.Sprintf("bench-%d", d.n))
	if err != nil {
		err = fmt.Errorf("%s: drift of %s: %w", t.cluster, t.name, err)
	}
	return took, err
}

func (f *fleet) compare(ctx context.Context, pairs []pair, fl *floor, trials int) (c comparison, err error) {
	var d drifter
	if err := f.warmUp(ctx, pairs, &d); err != nil {
		return c, err
	}
	before, err := f.snapshot(ctx)
	if err != nil {
		return c, err
	}
	floorBefore := fl.patched.Load()
	for i := range trials {
		p := pairs[i%len(pairs)]
		order := []*target{p.managed, p.copied}
		// Each of the two is the first one equally often.
		if i/len(pairs)%2 == 1 {
			order = []*target{p.copied, p.managed}
		}
		for _, t := range order {
			took, err := d.drift(ctx, t)
			if err != nil {
				return c, err
			}
			if t == p.managed {
				c.manager = append(c.manager, took)
			} else {
				c.floor = append(c.floor, took)
			}
		}
		if (i+1)%20 == 0 {
			logStep("drift %d of %d", i+1, trials)
		}
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return c, err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return c, err
	}
	c.used = after.subtract(before)
	// The drifts of both StatefulSets and the floor's corrections are not the manager's.
	c.used.Members = c.used.Members.exclude("PATCH statefulsets", 2*trials+int(fl.patched.Load()-floorBefore))
	return c, nil
}

func (f *fleet) warmUp(ctx context.Context, pairs []pair, d *drifter) error {
	logStep("warming up")
	for range warmUpTrials {
		for _, p := range pairs {
			for _, t := range []*target{p.managed, p.copied} {
				if _, err := d.drift(ctx, t); err != nil {
					return err
				}
			}
		}
	}
	return f.settle(ctx, quietTime)
}

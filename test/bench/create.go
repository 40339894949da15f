package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// replicas of a cache in every member, as in the smallest example.
const replicas = 2

// quietTime without a change counts as the end of an operation. It is longer than the
// manager's debounce of reports about pods that become ready.
const quietTime = 2500 * time.Millisecond

// batch is the number of caches that are created between two counts of the writes. A
// count costs an API server more than a create.
const batch = 10

// cacheName returns a name of the same length for every kind and number.
func cacheName(kind string, n int) string { return fmt.Sprintf("%.5s-%05d", kind+"-----", n) }

func cacheNames(kind string, n int) (all []string) {
	for i := range n {
		all = append(all, cacheName(kind, i))
	}
	return all
}

// newCache returns a memcached CacheCluster that is placed in every member.
func newCache(name string, replicas int32) *v1alpha1.CacheCluster {
	return &v1alpha1.CacheCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.CacheClusterSpec{
			CacheTemplate: v1alpha1.CacheTemplate{Engine: v1alpha1.EngineMemcached, Replicas: ptr.To(replicas), Memory: ptr.To(resource.MustParse("64Mi"))},
			Placement:     v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
		},
	}
}

// lifetime holds the durations from the create to each milestone. lag is from the last
// member's ready StatefulSet to Ready on the hub.
type lifetime struct{ present, complete, ready, lag time.Duration }

// create creates one cache and waits until it is Ready on the hub.
func (f *fleet) create(ctx context.Context, name string) (l lifetime, err error) {
	start := time.Now()
	if err := f.hub().Create(ctx, newCache(name, replicas)); err != nil {
		return l, err
	}
	hubReady, err := f.timeline.await(ctx, milestone{f.hub().name, name, ready})
	if err != nil {
		return l, err
	}
	var membersReady time.Duration
	for _, stop := range []struct {
		fact    fact
		elapsed *time.Duration
	}{{present, &l.present}, {complete, &l.complete}, {ready, &membersReady}} {
		last, err := f.timeline.await(ctx, milestonesIn(f.members(), name, stop.fact)...)
		if err != nil {
			return l, err
		}
		*stop.elapsed = last.Sub(start)
	}
	l.ready = hubReady.Sub(start)
	// The manager's watch may be faster than the watch of bench.
	l.lag = max(0, l.ready-membersReady)
	return l, nil
}

// concurrentDeletes bounds the requests that bench sends to the hub at the same time.
const concurrentDeletes = 32

// remove deletes caches and waits until the hub has released them.
func (f *fleet) remove(ctx context.Context, caches ...string) error {
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(concurrentDeletes)
	for _, name := range caches {
		group.Go(func() error {
			return client.IgnoreNotFound(f.hub().Delete(deleting, newCache(name, replicas)))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, name := range caches {
		if _, err := f.timeline.await(ctx, milestone{f.hub().name, name, deleted}); err != nil {
			return err
		}
	}
	for _, name := range caches {
		f.timeline.forget(name)
	}
	return nil
}

// removeAll deletes every CacheCluster of the lab.
func (f *fleet) removeAll(ctx context.Context) error {
	var all v1alpha1.CacheClusterList
	if err := f.hub().List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(all.Items) == 0 {
		return nil
	}
	logStep("removing %d CacheClusters", len(all.Items))
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return f.remove(ctx, names...)
}

// measureCreate creates one cache after the other.
func (f *fleet) measureCreate(ctx context.Context) error {
	warmUp := cacheName("first", 0)
	if _, err := f.create(ctx, warmUp); err != nil {
		return err
	}
	if err := f.remove(ctx, warmUp); err != nil {
		return err
	}
	var all []lifetime
	var used operation
	for len(all) < f.trials {
		lifetimes, cost, err := f.createBatch(ctx, len(all), min(len(all)+batch, f.trials))
		if err != nil {
			return err
		}
		all, used = append(all, lifetimes...), used.add(cost)
		logStep("create %d of %d", len(all), f.trials)
	}
	used.Hub = used.Hub.exclude("POST cacheclusters", f.trials)
	r := &f.report
	r.ApplyToPresent = latencies(pick(all, func(l lifetime) time.Duration { return l.present }))
	r.ApplyToReady = latencies(pick(all, func(l lifetime) time.Duration { return l.ready }))
	r.ChildrenPresent = ptr.To(latencies(pick(all, func(l lifetime) time.Duration { return l.complete })))
	r.StatusLag = ptr.To(latencies(pick(all, func(l lifetime) time.Duration { return l.lag })))
	r.Writes.HubPerCreate = used.Hub.writes() / float64(f.trials)
	r.PerOperation["create"] = used.divide(f.trials)
	return nil
}

// createBatch creates the trials first to end-1, counts their cost and removes them.
func (f *fleet) createBatch(ctx context.Context, first, end int) (all []lifetime, cost operation, err error) {
	if err := f.settle(ctx, quietTime); err != nil {
		return nil, cost, err
	}
	before, err := f.snapshot(ctx)
	if err != nil {
		return nil, cost, err
	}
	var created []string
	for i := first; i < end; i++ {
		name := cacheName("trial", i)
		l, err := f.create(ctx, name)
		if err != nil {
			return nil, cost, err
		}
		created, all = append(created, name), append(all, l)
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return nil, cost, err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return nil, cost, err
	}
	return all, after.subtract(before), f.remove(ctx, created...)
}

// pick returns one duration of each item.
func pick[T any](all []T, duration func(T) time.Duration) (picked []time.Duration) {
	for _, item := range all {
		picked = append(picked, duration(item))
	}
	return picked
}

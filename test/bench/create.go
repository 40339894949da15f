package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// replicas of every cache in every member, as in the smallest example.
const replicas = 2

// quietTime without a change counts as the end of an operation. It is longer than
// any time for which the manager puts a report off about pods that are ready.
const quietTime = 2500 * time.Millisecond

// inARow caches are made before their writes are counted and they are removed: a
// count costs an API server more than a create.
const inARow = 10

// cacheName has the same length for every kind and number.
func cacheName(kind string, n int) string { return fmt.Sprintf("%.5s-%05d", kind+"-----", n) }

// newCache is the smallest example: two memcached pods in every member.
func newCache(name string) *v1alpha1.CacheCluster {
	return &v1alpha1.CacheCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.CacheClusterSpec{
			CacheTemplate: v1alpha1.CacheTemplate{Engine: v1alpha1.EngineMemcached, Replicas: ptr.To(int32(replicas)), Memory: ptr.To(resource.MustParse("64Mi"))},
			Placement:     v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
		},
	}
}

// lifetime is how long after its create a cache was seen to get that far.
type lifetime struct{ present, covered, ready, lag time.Duration }

// create makes one cache and follows it until the hub says that it is Ready.
func (f *fleet) create(ctx context.Context, name string) (l lifetime, err error) {
	start := time.Now()
	if err := f.hub().Create(ctx, newCache(name)); err != nil {
		return l, err
	}
	said, err := f.marks.await(ctx, mark{f.hub().name, name, ready})
	if err != nil {
		return l, err
	}
	for _, stop := range []struct {
		what  fact
		after *time.Duration
	}{{present, &l.present}, {covered, &l.covered}, {ready, &l.lag}} {
		at, err := f.marks.await(ctx, in(f.members(), name, stop.what)...)
		if err != nil {
			return l, err
		}
		*stop.after = at.Sub(start)
	}
	l.ready = said.Sub(start)
	// The hub may learn of it before the bench does.
	l.lag = max(0, l.ready-l.lag)
	return l, nil
}

func (f *fleet) remove(ctx context.Context, caches ...string) error {
	var all []mark
	for _, name := range caches {
		if err := client.IgnoreNotFound(f.hub().Delete(ctx, newCache(name))); err != nil {
			return err
		}
		all = append(all, mark{f.hub().name, name, gone})
	}
	if _, err := f.marks.await(ctx, all...); err != nil {
		return err
	}
	for _, name := range caches {
		f.marks.forget(name)
	}
	return nil
}

// measureCreate makes one cache after the other.
func (f *fleet) measureCreate(ctx context.Context) error {
	first := cacheName("first", 0)
	if _, err := f.create(ctx, first); err != nil {
		return err
	}
	if err := f.remove(ctx, first); err != nil {
		return err
	}
	var present, covered, ready, lag []time.Duration
	var used operation
	for done := 0; done < f.trials; done += inARow {
		if err := f.settle(ctx, quietTime); err != nil {
			return err
		}
		before, err := f.snapshot(ctx)
		if err != nil {
			return err
		}
		var made []string
		for i := done; i < min(done+inARow, f.trials); i++ {
			made = append(made, cacheName("trial", i))
			l, err := f.create(ctx, made[len(made)-1])
			if err != nil {
				return err
			}
			present, covered, ready, lag = append(present, l.present), append(covered, l.covered), append(ready, l.ready), append(lag, l.lag)
		}
		if err := f.settle(ctx, quietTime); err != nil {
			return err
		}
		after, err := f.snapshot(ctx)
		if err != nil {
			return err
		}
		used = used.plus(after.minus(before))
		if err := f.remove(ctx, made...); err != nil {
			return err
		}
		step("create %d of %d", len(present), f.trials)
	}
	used.Hub = used.Hub.without("POST cacheclusters", f.trials)
	r := &f.report
	r.ApplyToPresent, r.ApplyToReady = latencies(present), latencies(ready)
	r.ChildrenPresent, r.StatusLag = ptr.To(latencies(covered)), ptr.To(latencies(lag))
	r.Writes.HubPerCreate = used.Hub.writes() / float64(f.trials)
	r.PerOperation["create"] = used.per(f.trials)
	return nil
}

// measureCreateAll makes all caches at once. They stay.
func (f *fleet) measureCreateAll(ctx context.Context) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	step("creating %d at once", f.caches)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	made := make(chan error)
	for i := range f.caches {
		go func() { made <- f.hub().Create(ctx, newCache(cacheName("cache", i))) }()
	}
	for range f.caches {
		if created := <-made; err == nil {
			err = created
		}
	}
	if err != nil {
		return err
	}
	var presents, readies []time.Duration
	for i := range f.caches {
		name := cacheName("cache", i)
		at, err := f.marks.await(ctx, in(f.members(), name, present)...)
		if err != nil {
			return err
		}
		presents = append(presents, at.Sub(start))
		if at, err = f.marks.await(ctx, mark{f.hub().name, name, ready}); err != nil {
			return err
		}
		readies = append(readies, at.Sub(start))
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.minus(before)
	used.Hub = used.Hub.without("POST cacheclusters", f.caches)
	r := &f.report
	r.CreateAll = &together{
		PresentP50: ms(quantile(presents, .5)), Present: ms(quantile(presents, 1)),
		ReadyP50: ms(quantile(readies, .5)), Ready: ms(quantile(readies, 1)),
	}
	r.Writes.HubPerCreateAll = used.Hub.writes() / float64(f.caches)
	r.PerOperation["createAll"] = used.per(f.caches)
	return nil
}

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// progress of one cache in a burst. present and ready are durations from the first
// request of the burst.
type progress struct {
	present, ready time.Duration
	// reported is from the last member's ready StatefulSet to the last Ready MemberCache,
	// summarized from there to the Ready CacheCluster; lag is the sum.
	reported, summarized, lag time.Duration
}

// burst is the outcome of many caches that were created at once.
type burst struct {
	caches []progress
	// used is the cost of all of them.
	used operation
}

func (b burst) present() []time.Duration {
	return pick(b.caches, func(p progress) time.Duration { return p.present })
}

func (b burst) ready() []time.Duration {
	return pick(b.caches, func(p progress) time.Duration { return p.ready })
}

func (b burst) lag() lag {
	total := pick(b.caches, func(p progress) time.Duration { return p.lag })
	reported := pick(b.caches, func(p progress) time.Duration { return p.reported })
	summarized := pick(b.caches, func(p progress) time.Duration { return p.summarized })
	return lag{
		P50: ms(quantile(total, .5)), Max: ms(quantile(total, 1)),
		ReportedP50: ms(quantile(reported, .5)), ReportedMax: ms(quantile(reported, 1)),
		SummarizedP50: ms(quantile(summarized, .5)), SummarizedMax: ms(quantile(summarized, 1)),
	}
}

// createBurst creates all caches at once and waits until they are Ready and nothing
// changes any more.
func (f *fleet) createBurst(ctx context.Context, caches []string, replicas int32) (b burst, err error) {
	if err := f.settle(ctx, quietTime); err != nil {
		return b, err
	}
	logStep("creating %d CacheClusters at once", len(caches))
	before, err := f.snapshot(ctx)
	if err != nil {
		return b, err
	}
	start := time.Now()
	group, creating := errgroup.WithContext(ctx)
	for _, name := range caches {
		group.Go(func() error { return f.hub().Create(creating, newCache(name, replicas)) })
	}
	if err := group.Wait(); err != nil {
		return b, err
	}
	for _, name := range caches {
		p, err := f.followProgress(ctx, name, start)
		if err != nil {
			return b, err
		}
		b.caches = append(b.caches, p)
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return b, err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return b, err
	}
	b.used = after.subtract(before)
	b.used.Hub = b.used.Hub.exclude("POST cacheclusters", len(caches))
	return b, nil
}

// followProgress waits until a cache is Ready on the hub.
func (f *fleet) followProgress(ctx context.Context, name string, start time.Time) (p progress, err error) {
	hub := f.hub().name
	var reports []milestone
	for _, c := range f.members() {
		reports = append(reports, milestone{hub, memberCacheName(name, c), ready})
	}
	var presentTime, settledTime, reportedTime, readyTime time.Time
	for _, stop := range []struct {
		reached    *time.Time
		milestones []milestone
	}{
		{&presentTime, milestonesIn(f.members(), name, present)},
		{&settledTime, milestonesIn(f.members(), name, ready)},
		{&reportedTime, reports},
		{&readyTime, []milestone{{hub, name, ready}}},
	} {
		if *stop.reached, err = f.timeline.await(ctx, stop.milestones...); err != nil {
			return p, err
		}
	}
	// The manager's watch may be faster than the watch of bench.
	return progress{
		present: presentTime.Sub(start), ready: readyTime.Sub(start),
		reported: max(0, reportedTime.Sub(settledTime)), summarized: max(0, readyTime.Sub(reportedTime)), lag: max(0, readyTime.Sub(settledTime)),
	}, nil
}

// measureCreateAll creates all caches at once. They remain for the next stages.
func (f *fleet) measureCreateAll(ctx context.Context) error {
	b, err := f.createBurst(ctx, cacheNames("cache", f.caches), replicas)
	if err != nil {
		return err
	}
	presents, readies, lag := b.present(), b.ready(), b.lag()
	r := &f.report
	r.CreateAll = &together{
		PresentP50: ms(quantile(presents, .5)), Present: ms(quantile(presents, 1)),
		ReadyP50: ms(quantile(readies, .5)), Ready: ms(quantile(readies, 1)),
		HubReconciles:   b.used.reconciles(hubController) / float64(f.caches),
		SpokeReconciles: b.used.reconciles(spokeController) / float64(f.caches*len(f.members())),
	}
	r.StatusLagAll = &lag
	r.Writes.HubPerCreateAll = b.used.Hub.writes() / float64(f.caches)
	r.PerOperation["createAll"] = b.used.divide(f.caches)
	return nil
}

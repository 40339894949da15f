package main

import (
	"context"
	"fmt"
	"time"
)

// watchAfterRestart is how long the writes of a restarted manager are counted.
const watchAfterRestart = 30 * time.Second

// measureRestart restarts the manager twice: without work, and with drift that happened
// while no manager ran.
func (f *fleet) measureRestart(ctx context.Context) error {
	if err := f.restartWithoutWork(ctx); err != nil {
		return err
	}
	logStep("restarting the manager with drift to correct")
	cache := cacheName("cache", 0)
	corrected := make(chan error, len(f.members()))
	stopped, _, err := f.manager.restart(ctx, func() error {
		for _, c := range f.members() {
			if err := f.startDrift(ctx, c, cache, corrected); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for range f.members() {
		if err := <-corrected; err != nil {
			return fmt.Errorf("waiting for a correction after the restart: %w", err)
		}
	}
	f.report.Restart.BackAtWork = elapsed(stopped, time.Now())
	return f.settle(ctx, quietTime)
}

func (f *fleet) restartWithoutWork(ctx context.Context) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	logStep("restarting the manager and counting writes for %s", watchAfterRestart)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	stopped, started, err := f.manager.restart(ctx)
	if err != nil {
		return err
	}
	r := &restart{StopS: elapsed(stopped, started), StartS: elapsed(started, time.Now())}
	if err := pause(ctx, time.Until(started.Add(watchAfterRestart))); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.afterRestart(before)
	r.QuietS = elapsed(stopped, f.timeline.lastEvent(names(f.clusters)...))
	r.SpokeReconciles = used.reconciles(spokeController) / float64(f.caches*len(f.members()))
	f.report.Restart = r
	f.report.Writes.AfterRestart = used.Hub.writes() + used.Members.writes()
	f.report.PerOperation["restart"] = used
	return nil
}

// startDrift changes the replicas in one member and sends to corrected when the manager
// has corrected them.
func (f *fleet) startDrift(ctx context.Context, c *cluster, cache string, corrected chan<- error) error {
	t, err := watchTarget(ctx, c, cache)
	if err != nil {
		return err
	}
	if err := t.scale(ctx, replicas+1, "bench-restart"); err != nil {
		t.watch.Stop()
		return err
	}
	go func() {
		defer t.watch.Stop()
		_, err := t.await(ctx, hasReplicas(replicas+1))
		if err == nil {
			_, err = t.await(ctx, hasReplicas(replicas))
		}
		corrected <- err
	}()
	return nil
}

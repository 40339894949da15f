package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// measureIdle counts writes while there is nothing to do.
func (f *fleet) measureIdle(ctx context.Context) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	// What went before has its last echo in events and counts.
	const echo = 10 * time.Second
	if err := pause(ctx, echo); err != nil {
		return err
	}
	step("watching for writes for %s", f.idle)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, f.idle); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.minus(before)
	f.report.Writes.Idle = used.Hub.writes() + used.Members.writes()
	f.report.PerOperation["idle"] = used
	return nil
}

func (f *fleet) measureMemory(context.Context) (err error) {
	f.report.Manager.RSSBytes, f.report.Manager.RSSPeakBytes, err = f.manager.resident()
	return err
}

// afterRestart is how long a restarted manager is watched.
const afterRestart = 30 * time.Second

// measureRestart restarts the manager twice: once with nothing to do, and once
// with something that drifted in each member in the meantime.
func (f *fleet) measureRestart(ctx context.Context) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	step("restarting the manager, watching it for %s", afterRestart)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	stopped, started, err := f.manager.restart(ctx)
	if err != nil {
		return err
	}
	r := &restart{StopS: started.Sub(stopped).Seconds(), StartS: time.Since(started).Seconds()}
	if err := pause(ctx, time.Until(started.Add(afterRestart))); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	// Its own counts began anew.
	used := operation{after.Hub.minus(before.Hub), after.Members.minus(before.Members), after.Manager}
	f.report.Writes.AfterRestart = used.Hub.writes() + used.Members.writes()
	f.report.PerOperation["restart"] = used
	if last := f.marks.lastEvent(names(f.clusters)...); last.After(stopped) {
		r.QuietS = last.Sub(stopped).Seconds()
	}
	f.report.Restart = r

	step("restarting the manager with drift waiting for it")
	cache := cacheName("cache", 0)
	repaired := make(chan error, len(f.members()))
	var last time.Time
	stopped, _, err = f.manager.restart(ctx, func() error {
		for _, c := range f.members() {
			s, err := spot(ctx, c, cache)
			if err != nil {
				return err
			}
			if err := s.scale(ctx, replicas+1, "bench-restart"); err != nil {
				return err
			}
			go func() {
				defer s.watch.Stop()
				if _, err := s.until(ctx, has(replicas+1)); err != nil {
					repaired <- err
					return
				}
				_, err := s.until(ctx, has(replicas))
				repaired <- err
			}()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for range f.members() {
		if err := <-repaired; err != nil {
			return fmt.Errorf("wait for a repair after the restart: %w", err)
		}
		last = time.Now()
	}
	r.BackAtWork = last.Sub(stopped).Seconds()
	return f.settle(ctx, quietTime)
}

func has(replicas int32) func(*appsv1.StatefulSet) bool {
	return func(set *appsv1.StatefulSet) bool { return *set.Spec.Replicas == replicas }
}

// scale as somebody else does.
func (s *spotted) scale(ctx context.Context, to int32, by string) error {
	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = namespace, s.name
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, to)
	return s.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(by))
}

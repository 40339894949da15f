package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// hungTrials of each kind, half as many as in general: there are three rounds.
func (f *fleet) hungTrials() int { return max(f.trials/3, 4) }

// measureHung stops one member's API server where it stands, with all connections
// open, and does the same work in the others as before and after it.
func (f *fleet) measureHung(ctx context.Context) (err error) {
	if len(f.members()) < 2 {
		step("one member alone has no others: nothing hangs")
		return nil
	}
	victim := f.toBeHung()
	server, err := apiServer(f.lab.Dir, victim.name)
	if err != nil {
		return err
	}
	n := f.hungTrials()
	step("healthy, for comparison")
	before, err := f.work(ctx, "fit-a", (n+1)/2)
	if err != nil {
		return err
	}
	// One that nothing else happens to, if there are so many.
	witness := mark{f.hub().name, cacheName("cache", f.caches-1), unknown}

	step("%s hangs", victim)
	defer func() { err = errors.Join(err, server.Signal(syscall.SIGCONT)) }()
	stopped := time.Now()
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	h := &hung{}
	reported := make(chan error, 1)
	go func() {
		said, err := f.marks.await(ctx, witness)
		h.LossReportedS = said.Sub(stopped).Seconds()
		reported <- err
	}()
	ill, err := f.work(ctx, "hung", n)
	if err != nil {
		return err
	}
	if err := <-reported; err != nil {
		return err
	}

	step("%s goes on", victim)
	back := time.Now()
	if err := server.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	var pending []mark
	for _, name := range ill.made {
		pending = append(pending, mark{victim.name, name, present})
	}
	landed, err := f.marks.await(ctx, pending...)
	if err != nil {
		return err
	}
	h.LandedS = landed.Sub(back).Seconds()
	if err := f.allReady(ctx, slices.Concat(ill.made, before.made)); err != nil {
		return err
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	step("healthy again, for comparison")
	after, err := f.work(ctx, "fit-b", (n+1)/2)
	if err != nil {
		return err
	}
	creates, drifts := slices.Concat(before.creates, after.creates), slices.Concat(before.drifts, after.drifts)
	h.HealthyP50, h.HungP50 = ms(quantile(creates, .5)), ms(quantile(ill.creates, .5))
	h.HealthyDriftP50, h.HungDriftP50 = ms(quantile(drifts, .5)), ms(quantile(ill.drifts, .5))
	h.CreateRatio, h.DriftRatio = ratio(h.HungP50, h.HealthyP50), ratio(h.HungDriftP50, h.HealthyDriftP50)
	f.report.HungMember = h
	return f.remove(ctx, slices.Concat(before.made, ill.made, after.made)...)
}

// work is the same in every round: creates and drifts in turn.
type work struct {
	made            []string
	creates, drifts []time.Duration
}

// work makes caches in every member and lets others drift, and looks at all
// members but the last.
func (f *fleet) work(ctx context.Context, kind string, n int) (w work, err error) {
	var spots []*spotted
	defer func() {
		for _, s := range spots {
			s.watch.Stop()
		}
	}()
	for i, c := range f.healthy() {
		s, err := spot(ctx, c, cacheName("cache", i%f.caches))
		if err != nil {
			return w, err
		}
		spots = append(spots, s)
	}
	for i := range n {
		name := cacheName(kind, i)
		start := time.Now()
		if err := f.hub().Create(ctx, newCache(name)); err != nil {
			return w, err
		}
		w.made = append(w.made, name)
		at, err := f.marks.await(ctx, in(f.healthy(), name, present)...)
		if err != nil {
			return w, err
		}
		w.creates = append(w.creates, at.Sub(start))
		if _, err := f.marks.await(ctx, in(f.healthy(), name, ready)...); err != nil {
			return w, err
		}
		for _, s := range spots {
			took, err := s.drift(ctx, fmt.Sprintf("bench-%s-%d", kind, i))
			if err != nil {
				return w, err
			}
			w.drifts = append(w.drifts, took)
		}
	}
	return w, nil
}

// allReady waits until the hub calls all of these ready.
func (f *fleet) allReady(ctx context.Context, caches []string) error {
	for _, name := range caches {
		if _, err := f.marks.await(ctx, mark{f.hub().name, name, ready}); err != nil {
			return err
		}
	}
	return nil
}

// apiServer of a cluster of an embedded lab.
func apiServer(dir, cluster string) (*os.Process, error) {
	const program = "kube-apiserver"
	found, err := process.Find(filepath.Join(dir, "clusters", cluster), program)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s runs %d times for %s", program, len(found), cluster)
	}
	return os.FindProcess(found[0].PID)
}

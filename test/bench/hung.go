package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// hungTrials returns the trials while a member hangs. The stage has three rounds, so
// they are fewer than those of the other stages.
func (f *fleet) hungTrials() int { return max(f.trials/3, 4) }

// measureHung stops one member's API server with its connections open, and compares
// the same work in the other members before, meanwhile and after.
func (f *fleet) measureHung(ctx context.Context) error {
	if len(f.members()) < 2 {
		logStep("skipping the hung member: the lab has only one member")
		return nil
	}
	server, err := apiServer(f.lab.Dir, f.hungMember().name)
	if err != nil {
		return err
	}
	n := f.hungTrials()
	logStep("working before the hang, for comparison")
	before, err := f.work(ctx, "fit-a", (n+1)/2)
	if err != nil {
		return err
	}
	meanwhile, h, err := f.workDuringHang(ctx, server, n)
	if err != nil {
		return err
	}
	if err := f.awaitReady(ctx, slices.Concat(meanwhile.created, before.created)); err != nil {
		return err
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	logStep("working after the hang, for comparison")
	after, err := f.work(ctx, "fit-b", (n+1)/2)
	if err != nil {
		return err
	}
	creates, drifts := slices.Concat(before.creates, after.creates), slices.Concat(before.drifts, after.drifts)
	h.HealthyP50, h.HungP50 = ms(quantile(creates, .5)), ms(quantile(meanwhile.creates, .5))
	h.HealthyDriftP50, h.HungDriftP50 = ms(quantile(drifts, .5)), ms(quantile(meanwhile.drifts, .5))
	h.CreateRatio, h.DriftRatio = ratio(h.HungP50, h.HealthyP50), ratio(h.HungDriftP50, h.HealthyDriftP50)
	f.report.HungMember = &h
	return f.remove(ctx, slices.Concat(before.created, meanwhile.created, after.created)...)
}

// workDuringHang stops the API server and works in the other members until the hub reports
// the loss. Then it lets the server continue and waits until it has all pending work.
func (f *fleet) workDuringHang(ctx context.Context, server process.Process, n int) (w work, h hung, err error) {
	logStep("%s hangs", f.hungMember())
	// Even if this fails, the lab must be usable and removable.
	defer func() { _ = process.Resume(server) }()
	stopped := time.Now()
	if err := process.Pause(server); err != nil {
		return w, h, err
	}
	type loss struct {
		reported time.Time
		err      error
	}
	lost := make(chan loss, 1)
	go func() {
		// The work touches the first caches only, if there are enough.
		reported, err := f.timeline.await(ctx, milestone{f.hub().name, cacheName("cache", f.caches-1), unknown})
		lost <- loss{reported, err}
	}()
	if w, err = f.work(ctx, "hung", n); err != nil {
		return w, h, err
	}
	l := <-lost
	if l.err != nil {
		return w, h, l.err
	}
	h.LossReportedS = l.reported.Sub(stopped).Seconds()

	logStep("%s continues", f.hungMember())
	continued := time.Now()
	if err := process.Resume(server); err != nil {
		return w, h, err
	}
	var pending []milestone
	for _, name := range w.created {
		pending = append(pending, milestone{f.hungMember().name, name, present})
	}
	landed, err := f.timeline.await(ctx, pending...)
	h.LandedS = elapsed(continued, landed)
	return w, h, err
}

// work is the outcome of one round of creates and drifts in turn.
type work struct {
	created         []string
	creates, drifts []time.Duration
}

// work creates caches in every member and lets existing ones drift. It waits for all
// members but the one that hangs.
func (f *fleet) work(ctx context.Context, kind string, n int) (w work, err error) {
	var targets []*target
	defer func() {
		for _, t := range targets {
			t.watch.Stop()
		}
	}()
	for i, c := range f.otherMembers() {
		t, err := watchTarget(ctx, c, cacheName("cache", i%f.caches))
		if err != nil {
			return w, err
		}
		targets = append(targets, t)
	}
	for i := range n {
		name := cacheName(kind, i)
		start := time.Now()
		if err := f.hub().Create(ctx, newCache(name, replicas)); err != nil {
			return w, err
		}
		w.created = append(w.created, name)
		last, err := f.timeline.await(ctx, milestonesIn(f.otherMembers(), name, present)...)
		if err != nil {
			return w, err
		}
		w.creates = append(w.creates, last.Sub(start))
		if _, err := f.timeline.await(ctx, milestonesIn(f.otherMembers(), name, ready)...); err != nil {
			return w, err
		}
		for _, t := range targets {
			took, err := t.drift(ctx, fmt.Sprintf("bench-%s-%d", kind, i))
			if err != nil {
				return w, err
			}
			w.drifts = append(w.drifts, took)
		}
	}
	return w, nil
}

// awaitReady waits until all caches are Ready on the hub.
func (f *fleet) awaitReady(ctx context.Context, caches []string) error {
	for _, name := range caches {
		if _, err := f.timeline.await(ctx, milestone{f.hub().name, name, ready}); err != nil {
			return err
		}
	}
	return nil
}

// apiServer returns the API server's process of a cluster of an embedded lab.
func apiServer(dir, cluster string) (process.Process, error) {
	const program = "kube-apiserver"
	found, err := process.Find(filepath.Join(dir, "clusters", cluster), program)
	if err != nil {
		return process.Process{}, err
	}
	if len(found) != 1 {
		return process.Process{}, fmt.Errorf("%d processes of %s run for %s, want one", len(found), program, cluster)
	}
	return found[0], nil
}

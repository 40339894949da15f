package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options are the options of Up.
type Options struct {
	// Members is the number of member clusters.
	Members int
	// Manager is true if the hub manager runs as a process of this machine.
	Manager bool
	// Report receives the current step of a cluster, or of the whole lab if subject is "".
	Report func(subject, step string)
}

// on returns a Report for one subject.
func (o Options) on(subject string) Report {
	return func(step string) { o.Report(subject, step) }
}

// The last step that is reported for a subject.
const (
	Done    = "ready"
	Removed = "removed"
)

// Up creates the lab that the options describe, or completes or changes an existing one.
func Up(ctx context.Context, l *Lab, p Provider, o Options) error {
	unlock, err := l.lock(ctx, o.on(""))
	if err != nil {
		return err
	}
	defer unlock()
	state, err := l.Load()
	if err != nil {
		return err
	}
	if state.Provider != "" && state.Provider != p.Name() {
		return fmt.Errorf("lab %s uses provider %s, not %s; choose another --name, or remove it with reconcile-lab down --name %s",
			l.Name, state.Provider, p.Name(), l.Name)
	}
	desired := append([]string{Hub}, memberNames(o.Members)...)
	existing, err := check(ctx, l, p, desired, o)
	if err == nil {
		err = p.Prepare(ctx, o.on(""))
	}
	if err != nil {
		if state.Provider == "" && len(existing) == 0 {
			// No cluster exists yet, so the refused lab must not leave its directory.
			err = errors.Join(err, l.remove())
		}
		return err
	}
	state.Provider, state.Members = p.Name(), desired[1:]
	// Saved before the first cluster is created: Down then removes what an interrupted Up
	// leaves.
	if err := errors.Join(l.save(state), l.writeLabName(begunFile)); err != nil {
		return err
	}
	if err := ensureClusters(ctx, p, desired, existing, o); err != nil {
		return err
	}
	if err := l.writeKubeconfig(ctx, p, desired); err != nil {
		return err
	}
	return l.connect(ctx, p, &state, o)
}

// connect joins the members to the hub, and starts or stops the hub manager.
func (l *Lab) connect(ctx context.Context, p Provider, state *State, o Options) error {
	// A recreated member needs the manager before it can join again; all others after.
	startManager := sync.OnceValue(func() error {
		if !o.Manager {
			return nil
		}
		server, err := podServer(ctx, p, Hub)
		if err != nil {
			return err
		}
		return l.ensureManager(ctx, state, server, o.on(""))
	})
	if err := joinAll(ctx, p, state.Members, startManager, o); err != nil {
		return err
	}
	if !o.Manager {
		return errors.Join(l.stopManager(ctx, state), l.save(*state), l.makeCurrent())
	}
	if err := startManager(); err != nil {
		return err
	}
	if err := l.waitForReachable(ctx, p, state.Members, o); err != nil {
		return err
	}
	o.Report("", Done)
	// Only a complete lab becomes the current one.
	return l.makeCurrent()
}

// check returns the existing clusters. It returns an error for a lab that would fail
// later, before anything is created.
func check(ctx context.Context, l *Lab, p Provider, desired []string, o Options) ([]string, error) {
	existing, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	if o.Manager {
		if _, err := findManager(); err != nil {
			return existing, err
		}
	}
	return existing, checkResources(p, l.Dir, desired, existing)
}

// memberNames returns member-1 to member-n.
func memberNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("member-%d", i+1)
	}
	return names
}

// parallel calls f for each name, with limited concurrency. The first error cancels the
// other calls.
func parallel(ctx context.Context, names []string, f func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(4, runtime.NumCPU()))
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}

// ensureClusters creates the desired clusters and removes the others.
func ensureClusters(ctx context.Context, p Provider, desired, existing []string, o Options) error {
	if err := parallel(ctx, desired, func(ctx context.Context, cluster string) error {
		if err := p.Create(ctx, cluster, roleOf(cluster), o.on(cluster)); err != nil {
			return err
		}
		if cluster == Hub {
			return prepareHub(ctx, p, o)
		}
		return nil
	}); err != nil {
		return err
	}
	surplus := slices.DeleteFunc(existing, func(c string) bool { return slices.Contains(desired, c) })
	return removeMembers(ctx, p, surplus, o)
}

// prepareHub applies the CRDs to the hub.
func prepareHub(ctx context.Context, p Provider, o Options) error {
	o.Report(Hub, "applying the CRDs")
	config, err := restConfig(ctx, p, Hub)
	if err != nil {
		return err
	}
	if err := install(ctx, config); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	o.Report(Hub, Done)
	return nil
}

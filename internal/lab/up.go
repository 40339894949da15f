package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
)

// Options of Up.
type Options struct {
	// Members is how many member clusters the lab is to have.
	Members int
	// Manager says whether the hub manager is to run as a process of this machine.
	Manager bool
	// Report is told what is done for what: a cluster, or "" for the whole lab.
	Report func(subject, step string)
}

func (o Options) on(subject string) Report {
	return func(step string) { o.Report(subject, step) }
}

// The last steps that are reported for a subject.
const (
	Done    = "ready"
	Removed = "removed"
)

// Up makes the lab as the options say, or completes or changes what is there.
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
		return fmt.Errorf("lab %s runs on provider %s, not %s: choose another --name, or remove it with reconcile-lab down --name %s",
			l.Name, state.Provider, p.Name(), l.Name)
	}
	wanted := append([]string{Hub}, memberNames(o.Members)...)
	existing, err := check(ctx, l, p, wanted, o)
	if err == nil {
		err = p.Prepare(ctx, o.on(""))
	}
	if err != nil {
		if state.Provider == "" && len(existing) == 0 {
			// Nothing was made yet, so nothing shall be left.
			err = errors.Join(err, l.remove())
		}
		return err
	}
	state.Provider, state.Members = p.Name(), wanted[1:]
	// Recorded first, so that Down finds what an interrupted Up leaves.
	if err := errors.Join(l.save(state), l.name(begunFile)); err != nil {
		return err
	}

	if err := createAll(ctx, p, wanted, o); err != nil {
		return err
	}
	surplus := slices.DeleteFunc(existing, func(c string) bool { return slices.Contains(wanted, c) })
	if err := removeAll(ctx, p, surplus, o); err != nil {
		return err
	}
	if err := l.writeKubeconfig(ctx, p, wanted); err != nil {
		return err
	}
	// Members that were made anew need it before they join, all others after.
	manage := sync.OnceValue(func() error {
		if !o.Manager {
			return nil
		}
		server, err := podServer(ctx, p, Hub)
		if err != nil {
			return err
		}
		return l.ensureManager(ctx, &state, server, o.on(""))
	})
	if err := joinAll(ctx, p, wanted[1:], manage, o); err != nil {
		return err
	}
	if !o.Manager {
		return errors.Join(l.stopManager(ctx, &state), l.save(state), l.makeCurrent())
	}
	if err := manage(); err != nil {
		return err
	}
	if err := l.awaitReachable(ctx, p, wanted[1:], o); err != nil {
		return err
	}
	o.Report("", Done)
	// Only now: a half-made one must not take the place of one that works.
	return l.makeCurrent()
}

// check finds what would fail later, before anything is made, and returns the
// clusters that exist.
func check(ctx context.Context, l *Lab, p Provider, wanted []string, o Options) ([]string, error) {
	existing, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	if o.Manager {
		if _, err := findManager(); err != nil {
			return existing, err
		}
	}
	return existing, fits(p, l.Dir, wanted, existing)
}

func memberNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("member-%d", i+1)
	}
	return names
}

// parallel runs f for each name, as many at once as the machine bears. The first
// error cancels the others.
func parallel(ctx context.Context, names []string, f func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(4, runtime.NumCPU()))
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}

func createAll(ctx context.Context, p Provider, clusters []string, o Options) error {
	return parallel(ctx, clusters, func(ctx context.Context, cluster string) error {
		role := RoleMember
		if cluster == Hub {
			role = RoleHub
		}
		if err := p.Create(ctx, cluster, role, o.on(cluster)); err != nil {
			return err
		}
		if cluster == Hub {
			o.Report(cluster, "applying the CRDs")
			config, err := restConfig(ctx, p, cluster)
			if err != nil {
				return err
			}
			if err := install(ctx, config); err != nil {
				return fmt.Errorf("hub: %w", err)
			}
			o.Report(cluster, Done)
		}
		return nil
	})
}

// removeAll takes members out of the hub's inventory and removes their clusters.
func removeAll(ctx context.Context, p Provider, clusters []string, o Options) error {
	if len(clusters) == 0 {
		return nil
	}
	hub, err := restConfig(ctx, p, Hub)
	if err != nil {
		return err
	}
	c, err := newClient(hub)
	if err != nil {
		return err
	}
	return parallel(ctx, clusters, func(ctx context.Context, cluster string) error {
		o.Report(cluster, "removing it")
		var profile inventoryv1alpha1.ClusterProfile
		err := c.Get(ctx, client.ObjectKey{Namespace: v1alpha1.InventoryNamespace, Name: cluster}, &profile)
		if err == nil {
			// Its caches go with the cluster, so they are no reason to refuse.
			err = membership.Leave(ctx, hub, cluster, membership.LeaveOptions{Abandon: true})
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove %s from the hub: %w", cluster, err)
		}
		if err := p.Delete(ctx, cluster); err != nil {
			return err
		}
		o.Report(cluster, Removed)
		return nil
	})
}

// joinAll joins the members to the hub. manage starts the hub manager, if the lab
// is to have one.
func joinAll(ctx context.Context, p Provider, members []string, manage func() error, o Options) error {
	hub, err := restConfig(ctx, p, Hub)
	if err != nil {
		return err
	}
	return parallel(ctx, members, func(ctx context.Context, name string) error {
		o.Report(name, "joining the hub")
		member, err := restConfig(ctx, p, name)
		if err != nil {
			return err
		}
		server, err := podServer(ctx, p, name)
		if err != nil {
			return err
		}
		join := func() error {
			return membership.Join(ctx, hub, member, name, membership.Options{
				Labels: labels(p.Name(), slices.Index(members, name)),
				Server: server,
			})
		}
		err = join()
		if errors.Is(err, membership.ErrOther) {
			// The lab's names are its own, so the provider had to make this cluster anew
			// and the former one is gone with all that ran there.
			o.Report(name, "ending the membership of the cluster that it had before")
			// Leaving waits until the manager lets go, so one has to run.
			if err = manage(); err == nil {
				err = membership.Leave(ctx, hub, name, membership.LeaveOptions{Abandon: true})
			}
			if err == nil {
				err = join()
			}
		}
		if err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
		if !o.Manager {
			o.Report(name, Done)
		}
		return nil
	})
}

// labels spread the members over regions, for placement to select by.
func labels(provider string, index int) map[string]string {
	regions := []string{"eu", "us", "ap"}
	region := regions[index%len(regions)]
	return map[string]string{
		v1alpha1.LabelRegion:   region,
		v1alpha1.LabelZone:     fmt.Sprintf("%s-%d", region, index/len(regions)+1),
		v1alpha1.LabelProvider: provider,
		"tier":                 "lab",
	}
}

// awaitReachable waits until the manager says of every member that it answers.
func (l *Lab) awaitReachable(ctx context.Context, p Provider, members []string, o Options) error {
	config, err := restConfig(ctx, p, Hub)
	if err != nil {
		return err
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	missing := slices.Clone(members)
	for _, name := range missing {
		o.Report(name, "waiting for the hub manager to reach it")
	}
	why := "it says nothing about them"
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var profiles inventoryv1alpha1.ClusterProfileList
		if err := c.List(ctx, &profiles, client.InNamespace(v1alpha1.InventoryNamespace)); err != nil {
			return false, err
		}
		for _, profile := range profiles.Items {
			condition := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable)
			at := slices.Index(missing, profile.Name)
			if at < 0 || condition == nil {
				continue
			}
			why = condition.Message
			if condition.Status == metav1.ConditionTrue {
				missing = slices.Delete(missing, at, at+1)
				o.Report(profile.Name, Done)
			}
		}
		return len(missing) == 0, nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("the hub manager does not reach %s: %s (its log: %s): run reconcile-lab up again", strings.Join(missing, ", "), why, l.path(managerLog))
	}
	return err
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
)

// hubClient returns a client for the hub of the lab.
func hubClient(ctx context.Context, p Provider) (*rest.Config, client.Client, error) {
	config, err := restConfig(ctx, p, Hub)
	if err != nil {
		return nil, nil, err
	}
	c, err := newClient(config)
	return config, c, err
}

// removeMembers removes members from the inventory of the hub and deletes their clusters.
func removeMembers(ctx context.Context, p Provider, members []string, o Options) error {
	if len(members) == 0 {
		return nil
	}
	hub, c, err := hubClient(ctx, p)
	if err != nil {
		return err
	}
	return parallel(ctx, members, func(ctx context.Context, name string) error {
		o.Report(name, "removing the cluster")
		var profile inventoryv1alpha1.ClusterProfile
		err := c.Get(ctx, client.ObjectKey{Namespace: v1alpha1.InventoryNamespace, Name: name}, &profile)
		if err == nil {
			// The caches of the member are deleted with the cluster, so they can be abandoned.
			err = membership.Leave(ctx, hub, name, membership.LeaveOptions{Abandon: true})
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove %s from the hub: %w", name, err)
		}
		if err := p.Delete(ctx, name); err != nil {
			return err
		}
		o.Report(name, Removed)
		return nil
	})
}

// joinAll joins the members to the hub. startManager starts the hub manager if the lab has
// one.
func joinAll(ctx context.Context, p Provider, members []string, startManager func() error, o Options) error {
	hub, err := restConfig(ctx, p, Hub)
	if err != nil {
		return err
	}
	return parallel(ctx, members, func(ctx context.Context, name string) error {
		o.Report(name, "joining the hub")
		options := membership.Options{Labels: labels(p.Name(), slices.Index(members, name))}
		if err := join(ctx, p, hub, name, options, startManager, o.on(name)); err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
		if !o.Manager {
			o.Report(name, Done)
		}
		return nil
	})
}

// join joins one member. If the hub still has the membership of an earlier cluster with
// that name, join ends it first: cluster names are unique to the lab, so the provider has
// recreated the cluster, and the earlier one is gone with everything in it.
func join(ctx context.Context, p Provider, hub *rest.Config, name string, options membership.Options, startManager func() error, report Report) error {
	member, err := restConfig(ctx, p, name)
	if err != nil {
		return err
	}
	if options.Server, err = podServer(ctx, p, name); err != nil {
		return err
	}
	err = membership.Join(ctx, hub, member, name, options)
	if !errors.Is(err, membership.ErrOther) {
		return err
	}
	report("removing the membership of the earlier cluster")
	// Leave waits for the hub manager to release the member.
	if err := startManager(); err != nil {
		return err
	}
	if err := membership.Leave(ctx, hub, name, membership.LeaveOptions{Abandon: true}); err != nil {
		return err
	}
	return membership.Join(ctx, hub, member, name, options)
}

// labels returns the labels of a member. They spread members over regions and zones, so
// that placements can select by them.
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

// waitForReachable waits until the hub manager reports every member as reachable.
func (l *Lab) waitForReachable(ctx context.Context, p Provider, members []string, o Options) error {
	_, c, err := hubClient(ctx, p)
	if err != nil {
		return err
	}
	pending := slices.Clone(members)
	for _, name := range pending {
		o.Report(name, "waiting for the hub manager to connect")
	}
	reason := "it has not reported their state yet"
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var profiles inventoryv1alpha1.ClusterProfileList
		if err := c.List(ctx, &profiles, client.InNamespace(v1alpha1.InventoryNamespace)); err != nil {
			return false, err
		}
		for _, profile := range profiles.Items {
			condition := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable)
			index := slices.Index(pending, profile.Name)
			if index < 0 || condition == nil {
				continue
			}
			reason = condition.Message
			if condition.Status == metav1.ConditionTrue {
				pending = slices.Delete(pending, index, index+1)
				o.Report(profile.Name, Done)
			}
		}
		return len(pending) == 0, nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("the hub manager does not reach %s: %s; run reconcile-lab up again (log of the manager: %s)", strings.Join(pending, ", "), reason, l.path(managerLog))
	}
	return err
}

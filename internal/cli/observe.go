package cli

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const allNamespacesUsage = "select CacheClusters in all namespaces"

type observeFlags struct {
	allNamespaces, once bool
}

func (a *app) observeCommand() *cobra.Command {
	var f observeFlags
	cmd := &cobra.Command{
		Use:   "observe [NAME...]",
		Short: "Show the state of caches, then changes and drift as they happen",
		Long: "Print the state of each CacheCluster and its members, with the last corrected drift of each\n" +
			"member. Then print changes as they happen, until --timeout or Ctrl-C. A line about drift is\n\n" +
			"  drift detected and corrected in 38ms  MEMBER KIND/NAME FIELD OLD → NEW (was changed by MANAGER at TIME)\n\n" +
			"The duration starts when the change arrives at the hub. MANAGER is the field manager of the\n" +
			"change; a deleted object or removed field has none. (+2 more) counts two other drifts shortly\n" +
			"before. \"drift detected and not corrected\" is drift that remains because of spec.drift.policy,\n" +
			"or because of a conflict with another controller. -o json prints one line per event.",
		Example:           "  reconcile-lab observe\n  reconcile-lab observe cache-cluster --once -o yaml",
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd.Context(), args, f)
		},
	}
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, allNamespacesUsage)
	cmd.Flags().BoolVar(&f.once, "once", false, "print the present state and exit")
	return cmd
}

func (a *app) observe(ctx context.Context, names []string, f observeFlags) error {
	h, namespace, err := a.connectTo(f.allNamespaces)
	if err != nil {
		return err
	}
	caches, err := h.selected(ctx, namespace, names)
	if err != nil {
		return err
	}
	if len(caches) == 0 {
		a.noteNoCaches(namespace)
	}
	t := newTracker(time.Now, f.allNamespaces)
	var present []event
	for i := range caches {
		present = append(present, t.update(&caches[i])...)
	}
	// The latest drift is the last line, next to the prompt.
	sort.SliceStable(present, func(i, j int) bool {
		a, b := present[i].Drift, present[j].Drift
		if a == nil || b == nil {
			return a == nil && b != nil
		}
		return a.At.Before(&b.At)
	})
	if err := a.printEvents(present); err != nil || f.once {
		return err
	}
	return a.follow(ctx, h, namespace, t, func(cc *v1alpha1.CacheCluster) bool {
		return len(names) == 0 || slices.Contains(names, cc.Name)
	})
}

// follow prints events of the selected caches until ctx or --timeout ends.
func (a *app) follow(ctx context.Context, h *hub, namespace string, t *tracker, isSelected func(*v1alpha1.CacheCluster) bool) error {
	limited, cancel := a.withTimeout(ctx, 0)
	defer cancel()
	updates, lost, err := h.watch(limited, namespace)
	if err != nil {
		return err
	}
	connected := true
	for {
		select {
		case <-limited.Done():
			// The end of --timeout is no error.
			return ctx.Err()
		case err := <-lost:
			if connected {
				a.noteConnectionLost(err)
			}
			connected = false
		case u := <-updates:
			connected = true
			if !isSelected(u.cache) {
				continue
			}
			events := t.update(u.cache)
			if u.deleted {
				events = append(events, t.remove(u.cache)...)
			}
			if err := a.printEvents(events); err != nil {
				return err
			}
		}
	}
}

func (a *app) printEvents(events []event) error {
	for _, e := range events {
		if a.structured() {
			if err := a.printValue(e, true); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(a.out, e.line); err != nil {
			return err
		}
	}
	return nil
}

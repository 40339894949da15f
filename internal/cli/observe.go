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

type observeFlags struct {
	allNamespaces, once bool
}

func (a *app) observeCommand() *cobra.Command {
	var f observeFlags
	cmd := &cobra.Command{
		Use:   "observe [NAME...]",
		Short: "Show the state of caches, then transitions and drift as they happen",
		Long: "observe prints the present state of each CacheCluster and of its members, with the latest\n" +
			"drift that was put right in each member, and then what happens, until --timeout or Ctrl-C.\n" +
			"A line about drift reads\n\n" +
			"  drift detected and corrected in 38ms  MEMBER KIND/NAME FIELD WAS → IS (was changed by WHO at TIME)\n\n" +
			"where the time of the correction counts from the arrival of the change at the hub. WHO is\n" +
			"the field manager of the change; a deletion, or a removed field, leaves none. With (+2 more)\n" +
			"there were two others shortly before. What differs and is not put right, by drift.policy or in a\n" +
			"fight, is told as \"drift detected and left as it is\". -o json prints a line for each event.",
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd.Context(), args, f)
		},
	}
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	cmd.Flags().BoolVar(&f.once, "once", false, "print the present state only")
	return cmd
}

func (a *app) observe(ctx context.Context, names []string, f observeFlags) error {
	h, namespace, err := a.scope(f.allNamespaces)
	if err != nil {
		return err
	}
	caches, err := h.selected(ctx, namespace, names)
	if err != nil {
		return err
	}
	if len(caches) == 0 {
		a.note("there is no CacheCluster in %s", inNamespace(namespace))
	}
	t := newTracker(time.Now, f.allNamespaces)
	var present []happening
	for i := range caches {
		present = append(present, t.see(&caches[i])...)
	}
	// The latest drift stands last, where the eye is.
	sort.SliceStable(present, func(i, j int) bool {
		a, b := present[i].Drift, present[j].Drift
		if a == nil || b == nil {
			return a == nil && b != nil
		}
		return a.At.Before(&b.At)
	})
	if err := a.tell(present); err != nil || f.once {
		return err
	}
	return a.follow(ctx, h, namespace, t, func(cc *v1alpha1.CacheCluster) bool {
		return len(names) == 0 || slices.Contains(names, cc.Name)
	})
}

// follow tells what happens until ctx or --timeout ends.
func (a *app) follow(ctx context.Context, h *hub, namespace string, t *tracker, wanted func(*v1alpha1.CacheCluster) bool) error {
	limited, cancel := a.deadline(ctx, 0)
	defer cancel()
	sightings, lost, err := h.watch(limited, namespace)
	if err != nil {
		return err
	}
	away := false
	for {
		select {
		case <-limited.Done():
			// To stop at --timeout is what was asked for.
			return ctx.Err()
		case err := <-lost:
			if !away {
				a.note("connection to the hub lost, trying again: %v", err)
			}
			away = true
		case s := <-sightings:
			away = false
			if !wanted(s.cache) {
				continue
			}
			happened := t.see(s.cache)
			if s.deleted {
				happened = append(happened, t.gone(s.cache)...)
			}
			if err := a.tell(happened); err != nil {
				return err
			}
		}
	}
}

func (a *app) tell(happened []happening) error {
	for _, h := range happened {
		if a.structured() {
			if err := a.printValue(h, true); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(a.out, h.line); err != nil {
			return err
		}
	}
	return nil
}

// scope is the hub and the namespace that a command is about; "" is all.
func (a *app) scope(allNamespaces bool) (*hub, string, error) {
	if allNamespaces && a.hub.namespace != "" {
		return nil, "", badInput("--all-namespaces and --namespace exclude each other")
	}
	h, err := a.connect()
	if err != nil {
		return nil, "", err
	}
	if allNamespaces {
		return h, "", nil
	}
	return h, h.namespace, nil
}

// completeCaches completes names of CacheClusters in the shell.
func (a *app) completeCaches(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	caches, err := h.list(cmd.Context(), h.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, cc := range caches {
		if !slices.Contains(args, cc.Name) {
			names = append(names, cc.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

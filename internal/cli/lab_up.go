package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/embedded"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
)

// maxMembers is a bound against typing errors; a cluster takes half a gigabyte.
const maxMembers = 100

func newUpCommand() *cobra.Command {
	var provider string
	var members int
	var manager bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make a lab of a hub and members on this machine, or complete and change one",
		Long: "Up makes a hub and member clusters, joins the members to the hub and starts the hub\n" +
			"manager. It may be interrupted and repeated: it then completes what is there. On a lab\n" +
			"that is as asked for it changes nothing; with another --members it adds or removes some.\n\n" +
			"Providers:\n" +
			"  embedded   real control planes as processes, simulated nodes and pods (no Docker, no root)\n" +
			"  kind       real nodes and pods in Docker; deploy the hub manager there with make deploy",
		Example: "  reconcile-lab up\n  reconcile-lab up --members 5\n  reconcile-lab up --provider kind",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if members < 1 || members > maxMembers {
				return badInput("--members %d: use 1 to %d", members, maxMembers)
			}
			name, err := labName(cmd)
			if err != nil {
				return err
			}
			if name == "" {
				name = provider
			}
			l, err := lab.Open(name)
			if err != nil {
				return badInput("%w", err)
			}
			p, err := newProvider(provider, l)
			if err != nil {
				return err
			}
			start := time.Now()
			progress := newProgress(cmd.ErrOrStderr())
			err = up(cmd.Context(), l, p, lab.Options{
				Members: members,
				// On kind the manager is a pod of the hub.
				Manager: manager && provider == embedded.Name,
				Report:  progress.report,
			})
			progress.close()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "lab %s is ready: a hub and %s, in %s\n", l.Name, plural(members, "member"), time.Since(start).Round(100*time.Millisecond))
			fmt.Fprintf(cmd.OutOrStdout(), "to use kubectl with it: eval \"$(%s env)\"\n", invocation())
			return nil
		},
	}
	cmd.Flags().StringVar(&provider, "provider", embedded.Name, "what clusters are made of: embedded or kind")
	cmd.Flags().IntVar(&members, "members", 3, "number of member clusters")
	cmd.Flags().BoolVar(&manager, "manager", true, "run the hub manager (embedded only); false is for running it yourself")
	addName(cmd, "name of the lab; the provider's name if empty")
	return cmd
}

// up makes the lab as it is asked for, without any fault that was injected.
func up(ctx context.Context, l *lab.Lab, p lab.Provider, o lab.Options) error {
	faults, err := fault.List(l)
	if err != nil {
		return err
	}
	i := &fault.Injector{Lab: l, Provider: p, Report: func(step string) { o.Report("", step) }}
	if len(faults) > 0 {
		i.Report("undoing what was injected")
		if err := i.Heal(ctx); err != nil {
			return err
		}
	}
	if err := lab.Up(ctx, l, p, o); err != nil || len(faults) == 0 {
		return err
	}
	_, err = i.Undo(ctx, "")
	return err
}

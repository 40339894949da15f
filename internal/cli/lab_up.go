package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/embedded"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
)

// maxMembers catches typing errors. A cluster needs half a gigabyte of memory.
const maxMembers = 100

type upFlags struct {
	provider string
	members  int
	manager  bool
}

func newUpCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create a lab on this machine, or complete and resize one",
		Long: "Create a hub and member clusters, join the members to the hub, and start the hub manager.\n" +
			"An interrupted up can be repeated: it completes the lab. A complete lab is not changed;\n" +
			"another number of --members adds or removes some.\n\n" +
			"Providers:\n" +
			"  embedded   real control planes as processes, simulated nodes and pods (no Docker, no root)\n" +
			"  kind       real nodes and pods in Docker; deploy the hub manager with make deploy",
		Example: "  reconcile-lab up\n  reconcile-lab up --members 5\n  reconcile-lab up --provider kind",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runUp(cmd, f) },
	}
	cmd.Flags().StringVar(&f.provider, "provider", embedded.Name, "provider of the clusters: "+strings.Join(providerNames, " or "))
	cmd.Flags().IntVar(&f.members, "members", 3, "number of member clusters")
	cmd.Flags().BoolVar(&f.manager, "manager", true, "run the hub manager (embedded only); false if you run it yourself")
	addNameFlag(cmd, "name of the lab (default: the name of the provider)")
	return cmd
}

func runUp(cmd *cobra.Command, f upFlags) error {
	if f.members < 1 || f.members > maxMembers {
		return badInput("--members: %d: must be 1 to %d", f.members, maxMembers)
	}
	name, err := labName(cmd)
	if err != nil {
		return err
	}
	if name == "" {
		name = f.provider
	}
	l, err := lab.Open(name)
	if err != nil {
		return badInput("%w", err)
	}
	p, err := newProvider(f.provider, l)
	if err != nil {
		return err
	}
	start := time.Now()
	progress := newLabProgress(cmd.ErrOrStderr())
	err = up(cmd.Context(), l, p, lab.Options{
		Members: f.members,
		// On kind the manager is a pod on the hub.
		Manager: f.manager && f.provider == embedded.Name,
		Report:  progress.report,
	})
	progress.close()
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "lab %s is ready: hub and %s, in %s\n", l.Name, plural(f.members, "member"), time.Since(start).Round(100*time.Millisecond))
	fmt.Fprintf(cmd.OutOrStdout(), "to use kubectl with it: eval \"$(%s env)\"\n", invocation())
	return nil
}

// up creates or completes the lab, and undoes all injected faults.
func up(ctx context.Context, l *lab.Lab, p lab.Provider, o lab.Options) error {
	faults, err := fault.List(l)
	if err != nil {
		return err
	}
	i, err := fault.New(fault.Options{Lab: l, Provider: p, Report: func(step string) { o.Report("", step) }})
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		o.Report("", "undoing injected faults")
		if err := i.UndoForUp(ctx); err != nil {
			return err
		}
	}
	if err := lab.Up(ctx, l, p, o); err != nil || len(faults) == 0 {
		return err
	}
	_, err = i.Undo(ctx, "")
	return err
}

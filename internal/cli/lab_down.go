package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
)

func newDownCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Remove a lab with all its processes, containers and files",
		Long:    "Remove the lab of the last up, or the lab of --name, with all its processes, containers and\nfiles. The Kubernetes binaries in the cache stay.",
		Example: "  reconcile-lab down\n  reconcile-lab down --all",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := labName(cmd)
			if err != nil {
				return err
			}
			if all {
				return removeAllLabs(cmd, name)
			}
			if name == "" {
				// No other lab is selected: a repeated down must not remove the next lab.
				if name, err = lab.LastUp(); err != nil {
					return err
				}
			}
			if name == "" {
				return printOtherLabs(cmd)
			}
			return removeLab(cmd, name)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every lab of this user")
	addNameFlag(cmd, existingLabUsage)
	return cmd
}

const noLabFound = "no lab found"

func removeAllLabs(cmd *cobra.Command, name string) error {
	if name != "" {
		return badInput("--all: cannot be combined with --name %s; pass one of them", name)
	}
	names, err := lab.List()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), noLabFound)
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, removeLab(cmd, name))
	}
	return errors.Join(errs...)
}

// printOtherLabs prints the existing labs after the lab of the last up was removed.
func printOtherLabs(cmd *cobra.Command) error {
	names, err := lab.List()
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		fmt.Fprintln(cmd.OutOrStdout(), noLabFound)
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the lab of the last up is already removed; other labs: %s; remove one with %s down --name %s, or all with --all\n",
		strings.Join(names, ", "), invocation(), names[0])
	return nil
}

func removeLab(cmd *cobra.Command, name string) error {
	l, err := lab.Open(name)
	if err != nil {
		return badInput("%w", err)
	}
	// A lab with a damaged state file can still be removed.
	state, _ := l.Load()
	p, err := newProvider(providerName(l, state), l)
	if err != nil {
		return err
	}
	if !l.Exists() {
		// Clusters may exist without the folder, if a user deleted the folder.
		if clusters, err := p.List(cmd.Context()); err == nil && len(clusters) == 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "lab %s not found\n", name)
			return nil
		}
	}
	if err := fault.StopAgents(cmd.Context(), l); err != nil {
		return err
	}
	progress := newLabProgress(cmd.ErrOrStderr())
	err = lab.Down(cmd.Context(), l, p, progress.report)
	progress.close()
	if err != nil {
		return fmt.Errorf("lab: %s: %w; run %s down --name %s again", name, err, invocation(), name)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "lab %s removed\n", name)
	return nil
}

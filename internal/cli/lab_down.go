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
		Use:   "down",
		Short: "Remove a lab with all its processes, containers and files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := labName(cmd)
			if err != nil {
				return err
			}
			if all {
				if name != "" {
					return badInput("--all and --name %s: give one of them", name)
				}
				names, err := lab.List()
				if err != nil {
					return err
				}
				if len(names) == 0 {
					fmt.Fprintln(cmd.OutOrStdout(), noLab)
				}
				var failed []error
				for _, name := range names {
					failed = append(failed, removeLab(cmd, name))
				}
				return errors.Join(failed...)
			}
			if name == "" {
				// No other lab is guessed: a down that is repeated must not take the next one.
				if name, err = lab.LastUp(); err != nil {
					return err
				}
			}
			if name == "" {
				return tellOthers(cmd)
			}
			return removeLab(cmd, name)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every lab")
	addName(cmd, "name of the lab; the one of the last up if empty")
	return cmd
}

const noLab = "there is no lab"

// tellOthers says which labs there are where that of the last up is gone.
func tellOthers(cmd *cobra.Command) error {
	names, err := lab.List()
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		fmt.Fprintln(cmd.OutOrStdout(), noLab)
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the lab of the last up is gone; there is still %s: remove it with %s down --name %s, or all with --all\n",
		strings.Join(names, ", "), invocation(), names[0])
	return nil
}

func removeLab(cmd *cobra.Command, name string) error {
	l, err := lab.Open(name)
	if err != nil {
		return badInput("%w", err)
	}
	// A damaged record must not keep a lab from being removed.
	state, _ := l.Load()
	p, err := newProvider(providerName(l, state), l)
	if err != nil {
		return err
	}
	if !l.Exists() {
		// No folder, but clusters may be left of one that somebody removed by hand.
		if left, err := p.List(cmd.Context()); err == nil && len(left) == 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "there is no lab %s\n", name)
			return nil
		}
	}
	if err := fault.StopAgents(cmd.Context(), l); err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr())
	err = lab.Down(cmd.Context(), l, p, progress.report)
	progress.close()
	if err != nil {
		return fmt.Errorf("%w: run %s down --name %s again", err, invocation(), name)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "lab %s is removed\n", name)
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
)

func newClustersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "List the clusters of a lab",
		Long: "List the hub and the members of a lab. For scripts, -o json prints\n" +
			`[{"name","role":"hub|member","provider","kubeconfig","context","ready"}], and [] without a lab.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clusters, err := labClusters(cmd)
			if err != nil {
				return err
			}
			a := &app{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			if flag := cmd.Flags().Lookup("output"); flag != nil {
				a.output.value = flag.Value.String()
			}
			if a.structured() {
				return a.printValue(clusters, false)
			}
			if len(clusters) == 0 {
				_, err := existingLab(requestedLab(cmd))
				return err
			}
			rows := make([][]string, len(clusters))
			for i, c := range clusters {
				rows[i] = []string{c.Name, string(c.Role), c.Provider, c.Context, fmt.Sprint(c.Ready)}
			}
			return table(a.out, []string{"NAME", "ROLE", "PROVIDER", "CONTEXT", "READY"}, rows)
		},
	}
	addNameFlag(cmd, existingLabUsage)
	return cmd
}

// labClusters returns an empty list, not nil, without a lab.
func labClusters(cmd *cobra.Command) ([]lab.Cluster, error) {
	l, err := openLab(cmd)
	if errors.Is(err, errNoLab) {
		return []lab.Cluster{}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(l.Dir); err != nil {
		return []lab.Cluster{}, nil
	}
	p, err := providerOf(l)
	if err != nil {
		return nil, err
	}
	return lab.Clusters(cmd.Context(), l, p)
}

func newEnvCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "env",
		Short:   "Print shell commands that configure kubectl for a lab",
		Long:    "Print shell commands that set KUBECONFIG, with one context per cluster, and add the kubectl of\nthe lab to PATH.",
		Example: `  eval "$(reconcile-lab env)"; kubectl --context member-1 get pods`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := openLab(cmd)
			if err != nil {
				return err
			}
			kubeconfig, _, err := lab.ResolveKubeconfig(l.Name)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), exportLine("KUBECONFIG", kubeconfig))
			kubectl, found, err := binaries.Find("kubectl")
			if err != nil {
				return err
			}
			// The folder is appended, so that an installed kubectl takes precedence.
			if found {
				fmt.Fprintf(cmd.OutOrStdout(), "export PATH=\"$PATH\":%s\n", shellQuote(filepath.Dir(kubectl)))
			}
			return nil
		},
	}
	addNameFlag(cmd, existingLabUsage)
	return cmd
}

func exportLine(variable, value string) string {
	return fmt.Sprintf("export %s=%s", variable, shellQuote(value))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

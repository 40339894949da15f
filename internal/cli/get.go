package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func (a *app) getCommand() *cobra.Command {
	var allNamespaces bool
	cmd := &cobra.Command{
		Use:               "get [NAME...]",
		Short:             "List CacheClusters",
		Long:              "List CacheClusters with the columns of kubectl. The output of -o yaml can be applied again.",
		Example:           "  reconcile-lab get -A\n  reconcile-lab get cache-cluster -o yaml",
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			caches, err := a.cachesForTable(cmd.Context(), args, allNamespaces)
			if err != nil || len(caches) == 0 {
				return err
			}
			header, rows := cacheRows(caches, allNamespaces, a.output.value == "wide", time.Now())
			return table(a.out, header, rows)
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, allNamespacesUsage)
	return cmd
}

// cachesForTable returns the CacheClusters that the arguments select. With -o it
// prints them and returns none. Without any it prints a note.
func (a *app) cachesForTable(ctx context.Context, args []string, allNamespaces bool) ([]v1alpha1.CacheCluster, error) {
	h, namespace, err := a.connectTo(allNamespaces)
	if err != nil {
		return nil, err
	}
	caches, err := h.selected(ctx, namespace, args)
	switch {
	case err != nil:
		return nil, err
	case a.structured():
		return nil, a.printValue(printable(caches, len(args) == 1), false)
	case len(caches) == 0:
		a.noteNoCaches(namespace)
	}
	return caches, nil
}

// printable returns the value that -o prints for CacheClusters: a single named one,
// or a list, as kubectl does.
func printable(caches []v1alpha1.CacheCluster, single bool) any {
	for i := range caches {
		caches[i].TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CacheCluster"}
		caches[i].ManagedFields = nil
	}
	if single && len(caches) == 1 {
		return caches[0]
	}
	if caches == nil {
		caches = []v1alpha1.CacheCluster{}
	}
	return struct {
		APIVersion string                  `json:"apiVersion"`
		Kind       string                  `json:"kind"`
		Items      []v1alpha1.CacheCluster `json:"items"`
	}{"v1", "List", caches}
}

// cacheRows returns the columns of `kubectl get cacheclusters`.
func cacheRows(caches []v1alpha1.CacheCluster, withNamespace, wide bool, now time.Time) (header []string, rows [][]string) {
	header = []string{"NAME", "ENGINE", "MEMBERS", "READY", "STATUS", "REVISION", "AGE"}
	if withNamespace {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if wide {
		header = append(header, "MESSAGE")
	}
	for i := range caches {
		cc := &caches[i]
		c := readyCondition(cc)
		row := []string{cc.Name, string(cc.Spec.Engine), cc.Status.Members, string(c.Status), c.Reason, cc.Status.Revision, age(&cc.CreationTimestamp, now)}
		if withNamespace {
			row = append([]string{cc.Namespace}, row...)
		}
		if wide {
			row = append(row, oneLine(c.Message))
		}
		rows = append(rows, row)
	}
	return header, rows
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

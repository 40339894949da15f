package cli

import (
	"context"
	"fmt"
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
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			caches, err := a.asked(cmd.Context(), args, allNamespaces)
			if err != nil || len(caches) == 0 {
				return err
			}
			header, rows := cacheRows(caches, allNamespaces, a.output.value == "wide", time.Now())
			return table(a.out, header, rows)
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

// asked gives the CacheClusters that the arguments name, for a table; none where
// they were printed as JSON or YAML, or where there are none, which it says.
func (a *app) asked(ctx context.Context, args []string, allNamespaces bool) ([]v1alpha1.CacheCluster, error) {
	h, namespace, err := a.scope(allNamespaces)
	if err != nil {
		return nil, err
	}
	caches, err := h.selected(ctx, namespace, args)
	switch {
	case err != nil:
		return nil, err
	case a.structured():
		return nil, a.printValue(objects(caches, len(args) == 1), false)
	case len(caches) == 0:
		a.note("there is no CacheCluster in %s", inNamespace(namespace))
	}
	return caches, nil
}

func (a *app) statusCommand() *cobra.Command {
	var allNamespaces bool
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show a cache member by member",
		Long: "status prints a table of the members of each CacheCluster. Under a member that is not\n" +
			"ready stand the message and what to do about it.",
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			caches, err := a.asked(cmd.Context(), args, allNamespaces)
			if err != nil || len(caches) == 0 {
				return err
			}
			for i := range caches {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				if err := printStatus(a.out, &caches[i], time.Now()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

// objects is what -o prints of CacheClusters: the one that was named, or a list,
// as kubectl does.
func objects(caches []v1alpha1.CacheCluster, single bool) any {
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

// cacheRows are the columns of the kind's own printer columns.
func cacheRows(caches []v1alpha1.CacheCluster, withNamespace, wide bool, now time.Time) ([]string, [][]string) {
	header := []string{"NAME", "ENGINE", "MEMBERS", "READY", "STATUS", "REVISION", "AGE"}
	if withNamespace {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if wide {
		header = append(header, "MESSAGE")
	}
	rows := make([][]string, 0, len(caches))
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

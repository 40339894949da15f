package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func (a *app) statusCommand() *cobra.Command {
	var allNamespaces bool
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show the status of caches, member by member",
		Long: "Print a table of the members of each CacheCluster. Below a member that is not ready are the\n" +
			"message, a hint with the fix, and the next retry. Below each member are its remaining drift\n" +
			"and its last corrected drift.",
		Example:           "  reconcile-lab status cache-cluster",
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			caches, err := a.cachesForTable(cmd.Context(), args, allNamespaces)
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
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, allNamespacesUsage)
	return cmd
}

// printStatus prints a CacheCluster: a summary line, the table of its members, and
// the details of each member below its row.
func printStatus(w io.Writer, cc *v1alpha1.CacheCluster, now time.Time) error {
	fmt.Fprintf(w, "%s/%s: %s\n", cc.Namespace, cc.Name, summary(cc))
	if c := readyCondition(cc); c.Status != metav1.ConditionTrue && c.Message != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(c.Message))
	}
	if cc.Status.ObservedGeneration > 0 && cc.Status.ObservedGeneration < cc.Generation {
		fmt.Fprintln(w, "  the hub manager has not observed the latest change; the status below is of an earlier generation")
	}
	if len(cc.Status.Clusters) == 0 {
		return nil
	}
	header, rows := memberRows(cc, now)
	var buf bytes.Buffer
	if err := table(&buf, header, rows); err != nil {
		return err
	}
	// The table is complete before the details are inserted, which keeps its columns.
	lines := strings.Split(strings.TrimRight(buf.String(), "\n"), "\n")
	fmt.Fprintln(w, lines[0])
	for i, line := range lines[1:] {
		fmt.Fprintln(w, line)
		m := &cc.Status.Clusters[i]
		var details []string
		if m.State != v1alpha1.MemberReady {
			details = memberDetails(m, now)
		}
		for _, l := range append(details, driftDetails(m)...) {
			fmt.Fprintln(w, l)
		}
	}
	return nil
}

func memberRows(cc *v1alpha1.CacheCluster, now time.Time) (header []string, rows [][]string) {
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		rows = append(rows, []string{
			m.Name, string(m.State), fmt.Sprintf("%d/%d", m.ReadyReplicas, m.Replicas), m.Revision, m.Reason, age(m.Since, now), driftCount(m.LastDrift, now),
		})
	}
	return []string{"MEMBER", "STATE", "READY", "REVISION", "REASON", "SINCE", "DRIFTS"}, rows
}

// driftCount returns the number of corrected drifts and the age of the last, such as
// "4 (12s ago)".
func driftCount(d *v1alpha1.Drift, now time.Time) string {
	if d == nil {
		return ""
	}
	at := metav1.NewTime(d.At.Time)
	return fmt.Sprintf("%d (%s ago)", d.Count, age(&at, now))
}

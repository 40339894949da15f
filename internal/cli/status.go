package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// printStatus prints a CacheCluster in full: a line about all of it, the table of
// its members, and under each member that is not ready why, and what helps.
func printStatus(w io.Writer, cc *v1alpha1.CacheCluster, now time.Time) error {
	fmt.Fprintf(w, "%s/%s: %s\n", cc.Namespace, cc.Name, summary(cc))
	if c := readyCondition(cc); c.Status != metav1.ConditionTrue && c.Message != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(c.Message))
	}
	if cc.Status.ObservedGeneration > 0 && cc.Status.ObservedGeneration < cc.Generation {
		fmt.Fprintln(w, "  the hub manager has not looked at the latest change: what follows is about an older one")
	}
	if len(cc.Status.Clusters) == 0 {
		return nil
	}
	header, rows := memberRows(cc, now)
	var buf bytes.Buffer
	if err := table(&buf, header, rows); err != nil {
		return err
	}
	// The table is laid out first: lines in between would break its columns.
	lines := strings.Split(strings.TrimRight(buf.String(), "\n"), "\n")
	fmt.Fprintln(w, lines[0])
	for i, line := range lines[1:] {
		fmt.Fprintln(w, line)
		m := &cc.Status.Clusters[i]
		var more []string
		if m.State != v1alpha1.MemberReady {
			more = explainMember(m, now)
		}
		for _, l := range append(more, explainDrifts(m)...) {
			fmt.Fprintln(w, l)
		}
	}
	return nil
}

func memberRows(cc *v1alpha1.CacheCluster, now time.Time) ([]string, [][]string) {
	rows := make([][]string, 0, len(cc.Status.Clusters))
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		rows = append(rows, []string{
			m.Name, string(m.State), fmt.Sprintf("%d/%d", m.ReadyReplicas, m.Replicas), m.Revision, m.Reason, age(m.Since, now), lastDrift(m.LastDrift, now),
		})
	}
	return []string{"MEMBER", "STATE", "READY", "REVISION", "REASON", "SINCE", "DRIFTS"}, rows
}

// lastDrift is how many there were, and how long ago the latest, such as "4 (12s ago)".
func lastDrift(d *v1alpha1.Drift, now time.Time) string {
	if d == nil {
		return ""
	}
	at := metav1.NewTime(d.At.Time)
	return fmt.Sprintf("%d (%s ago)", d.Count, age(&at, now))
}

package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// driftFields names the fields of a finding, with the values where they are known,
// such as "spec.replicas 2 → 5".
func driftFields(f *v1alpha1.DriftFinding) string {
	values := map[string]string{}
	for _, c := range f.Changes {
		is := c.Is
		if is == "" {
			is = "nothing"
		}
		values[c.Path] = strings.TrimSpace(oneLine(c.Was) + " → " + oneLine(is))
		if known(c.Manager) {
			values[c.Path] += " (by " + c.Manager + ")"
		}
	}
	shown := make([]string, 0, len(f.Fields))
	for _, field := range f.Fields {
		if v := values[field]; v != "" {
			field += " " + v
		}
		shown = append(shown, field)
	}
	return strings.Join(shown, ", ")
}

// driftDone is what was done to the object, and by whom if that is known.
func driftDone(f *v1alpha1.DriftFinding) string {
	done := "was changed"
	switch {
	case f.Deleted:
		done = "was deleted"
	case f.Foreign:
		done = "was added"
	}
	if known(f.Manager) {
		done += " by " + f.Manager
	}
	return done
}

// known says that the API server has told who made a change.
func known(manager string) bool { return manager != "" && manager != "unknown" }

// openDriftLine is a line of observe about what differs and is not put right.
func openDriftLine(member, object string, f *v1alpha1.DriftFinding, now time.Time) string {
	at := ""
	if f.ChangedAt != nil {
		at = " at " + clock(f.ChangedAt.Time, now)
	}
	return fmt.Sprintf("drift detected and left as it is  %s %s (%s%s)", member, strings.TrimSpace(object+" "+driftFields(f)), driftDone(f), at)
}

// explainDrifts is what differs in a member now, and the values of what was put right
// last, each on an indented line.
func explainDrifts(m *v1alpha1.ClusterStatus) []string {
	var lines []string
	for i := range m.OpenDrifts {
		f := &m.OpenDrifts[i]
		lines = append(lines, "  differs: "+strings.TrimSpace(f.Object+" "+driftFields(f))+" ("+driftDone(f)+")")
	}
	if d := m.LastDrift; d != nil {
		what := strings.TrimSpace(d.Object + " " + driftFields(&d.DriftFinding))
		lines = append(lines, fmt.Sprintf("  put right in %s: %s (%s)", repairTime(d.RepairedIn.Duration), what, driftDone(&d.DriftFinding)))
	}
	return lines
}

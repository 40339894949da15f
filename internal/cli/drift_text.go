package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// driftFields returns the fields of a drift, with their values if the status has
// them, such as "spec.replicas 2 → 5".
func driftFields(f *v1alpha1.DriftFinding) string {
	values := map[string]string{}
	for _, c := range f.Changes {
		is := c.Is
		if is == "" {
			is = "nothing"
		}
		values[c.Path] = strings.TrimSpace(oneLine(c.Was) + " → " + oneLine(is))
		if isKnown(c.Manager) {
			values[c.Path] += " (by " + c.Manager + ")"
		}
	}
	texts := make([]string, 0, len(f.Fields))
	for _, field := range f.Fields {
		if v := values[field]; v != "" {
			field += " " + v
		}
		texts = append(texts, field)
	}
	if f.OmittedFields > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", f.OmittedFields))
	}
	return strings.Join(texts, ", ")
}

// driftCause returns what happened to the object, and the field manager if the
// status has one.
func driftCause(f *v1alpha1.DriftFinding) string {
	cause := "was changed"
	switch {
	case f.Deleted:
		cause = "was deleted"
	case f.Foreign:
		cause = "was added"
	}
	if isKnown(f.Manager) {
		cause += " by " + f.Manager
	}
	return cause
}

// isKnown reports whether the API server recorded the field manager of a change.
func isKnown(manager string) bool { return manager != "" && manager != "unknown" }

// correctedDriftLine returns the line of observe for a corrected drift. Scripts
// search for its first words, so they must not change.
func correctedDriftLine(member, object string, d *v1alpha1.Drift, now time.Time) string {
	fields := ""
	if !d.Deleted {
		fields = " " + driftFields(&d.DriftFinding)
	}
	when := "; corrected at " + clock(d.At.Time, now)
	if d.ChangedAt != nil {
		when = " at " + clock(d.ChangedAt.Time, now)
	}
	return fmt.Sprintf("drift detected and corrected in %s  %s %s%s (%s%s)", repairTime(d.RepairedIn.Duration), member, object, fields, driftCause(&d.DriftFinding), when)
}

// remainingDriftLine returns the line of observe for a drift that is not corrected.
func remainingDriftLine(member, object string, f *v1alpha1.DriftFinding, now time.Time) string {
	when := ""
	if f.ChangedAt != nil {
		when = " at " + clock(f.ChangedAt.Time, now)
	}
	return fmt.Sprintf("drift detected and not corrected  %s %s (%s%s)", member, strings.TrimSpace(object+" "+driftFields(f)), driftCause(f), when)
}

// driftDetails returns the remaining drift of a member and its last correction, each
// on an indented line.
func driftDetails(m *v1alpha1.ClusterStatus) []string {
	var lines []string
	for i := range m.OpenDrifts {
		f := &m.OpenDrifts[i]
		lines = append(lines, fmt.Sprintf("  not corrected: %s (%s)", strings.TrimSpace(f.Object+" "+driftFields(f)), driftCause(f)))
	}
	if d := m.LastDrift; d != nil {
		text := strings.TrimSpace(d.Object + " " + driftFields(&d.DriftFinding))
		lines = append(lines, fmt.Sprintf("  corrected in %s: %s (%s)", repairTime(d.RepairedIn.Duration), text, driftCause(&d.DriftFinding)))
	}
	return lines
}

// repairTime rounds d to milliseconds; below one to microseconds, above 10 s to
// seconds.
func repairTime(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	}
	return d.Round(time.Second).String()
}

// clock returns the time of day, with the date if it is not today.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

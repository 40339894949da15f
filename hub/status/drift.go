package status

import (
	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// driftReasons are the reasons of Drifted, the most severe one first.
var driftReasons = []string{v1alpha1.ReasonDriftFight, v1alpha1.ReasonDriftRefused, v1alpha1.ReasonDriftReported, v1alpha1.ReasonForeignFields}

// summarizeDrift returns the most severe reason of the members' remaining drift and a
// text about each of these members. Both are empty if no member has any.
func summarizeDrift(members []Member) (reason, message string) {
	severity := len(driftReasons)
	var parts []string
	for i := range members {
		if members[i].Cache == nil {
			continue
		}
		c := conditions.Get(members[i].Cache.Status.Conditions, v1alpha1.ConditionDrifted)
		if c == nil {
			continue
		}
		for s := range severity {
			if driftReasons[s] == c.Reason {
				severity, reason = s, c.Reason
				break
			}
		}
		parts = append(parts, members[i].Name+": "+c.Message)
	}
	if reason == "" {
		return "", ""
	}
	return reason, firstOf(parts)
}

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// drifted sums up what the members report to differ and not to be put back; a fight
// is the reason before what a member refuses to have put right, that before what is only
// reported, and that before foreign fields.
func drifted(members []Member) (reason, message string) {
	ranked := []string{v1alpha1.ReasonDriftFight, v1alpha1.ReasonDriftRefused, v1alpha1.ReasonDriftReported, v1alpha1.ReasonForeignFields}
	rank := len(ranked)
	var parts []string
	for i := range members {
		if members[i].Cache == nil {
			continue
		}
		c := meta.FindStatusCondition(members[i].Cache.Status.Conditions, v1alpha1.ConditionDrifted)
		if c == nil {
			continue
		}
		for r := range ranked {
			if ranked[r] == c.Reason && r < rank {
				rank, reason = r, c.Reason
			}
		}
		parts = append(parts, members[i].Name+": "+c.Message)
	}
	if reason == "" {
		return "", ""
	}
	return reason, few(parts)
}

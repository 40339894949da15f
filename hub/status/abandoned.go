package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// OrphanedChildren returns a text that names the children that an abandoned member
// keeps. It is short enough for an event.
func OrphanedChildren(m v1alpha1.AbandonedMember) string {
	if len(m.Children) == 0 {
		return "abandoned " + m.Name + ", which has no known children"
	}
	return "orphaned in " + m.Name + ": " + firstEight(m.Children, ", ")
}

// firstEight joins the first eight texts of a list and counts the others.
func firstEight(texts []string, separator string) string {
	const shown = 8
	if len(texts) <= shown {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:shown], separator), len(texts)-shown)
}

// abandonedCondition returns status, reason and message of Abandoned, or nil where no
// member was abandoned and the annotation names no unknown member.
func abandonedCondition(in Input) *metav1.Condition {
	c := &metav1.Condition{}
	var parts []string
	switch {
	case len(in.Abandoned) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAbandoned
		for _, m := range sortAbandoned(in.Abandoned) {
			parts = append(parts, OrphanedChildren(m))
		}
	case len(in.AbandonUnknown) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnknownMembers
	default:
		return nil
	}
	if text := in.unknownNames(); text != "" {
		parts = append(parts, text)
	}
	c.Message = firstEight(parts, "; ")
	return c
}

// unknownNames returns a text about the names in the abandon annotation that are no
// members, or an empty one.
func (in *Input) unknownNames() string {
	if len(in.AbandonUnknown) == 0 {
		return ""
	}
	names := make([]string, 0, len(in.AbandonUnknown))
	for _, name := range in.AbandonUnknown {
		names = append(names, fmt.Sprintf("%q", name))
	}
	return "metadata.annotations[" + v1alpha1.AnnotationAbandon + "]: the hub has no member " + firstEight(names, ", ") + "; correct the name"
}

func sortAbandoned(members []v1alpha1.AbandonedMember) []v1alpha1.AbandonedMember {
	return slices.SortedFunc(slices.Values(members), func(a, b v1alpha1.AbandonedMember) int { return strings.Compare(a.Name, b.Name) })
}

// removalText returns what delays the removal of the children from a member. The time
// since when the member is unreachable does not change, so that the text does not
// either.
func removalText(entry *v1alpha1.ClusterStatus) string {
	if entry.Class != v1alpha1.ClassUnreachable || entry.Since == nil {
		return entry.Name + ": " + messageOrReason(entry.Outcome)
	}
	return fmt.Sprintf("%s (unreachable since %s): %s", entry.Name, entry.Since.UTC().Format(time.RFC3339), messageOrReason(entry.Outcome))
}

// addAbandonHint adds the command that abandons an unreachable member to the hint.
func addAbandonHint(mc *v1alpha1.MemberCache, o *v1alpha1.Outcome) {
	if o.Class != v1alpha1.ClassUnreachable {
		return
	}
	if o.Hint != "" {
		o.Hint += "; "
	}
	o.Hint += fmt.Sprintf("to abandon the member and orphan its children: kubectl annotate cachecluster -n %s %s --overwrite %s=%s",
		mc.Namespace, mc.Spec.CacheCluster, v1alpha1.AnnotationAbandon, mc.Spec.Cluster)
}

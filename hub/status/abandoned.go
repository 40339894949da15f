package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// LeftBehind says what stays in a member that was let go. Its length suits an
// event.
func LeftBehind(m v1alpha1.AbandonedMember) string {
	if len(m.Children) == 0 {
		return "let go of " + m.Name + ", where no children are known"
	}
	return "left behind in " + m.Name + ": " + listed(m.Children, ", ")
}

// listed names the first eight of a list and counts the rest.
func listed(of []string, separator string) string {
	const shown = 8
	if len(of) <= shown {
		return strings.Join(of, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(of[:shown], separator), len(of)-shown)
}

// abandoned gives the condition about members that were let go; nil where there is
// nothing to say.
func abandoned(in Input) *metav1.Condition {
	c := &metav1.Condition{Type: v1alpha1.ConditionAbandoned, ObservedGeneration: in.Generation}
	var parts []string
	switch {
	case len(in.Abandoned) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAbandoned
		for _, m := range sortedAbandoned(in.Abandoned) {
			parts = append(parts, LeftBehind(m))
		}
	case len(in.AbandonUnknown) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnknownMembers
	default:
		return nil
	}
	if text := in.misnamed(); text != "" {
		parts = append(parts, text)
	}
	c.Message = listed(parts, "; ")
	return c
}

// misnamed tells of names in the annotation that are no members.
func (in *Input) misnamed() string {
	if len(in.AbandonUnknown) == 0 {
		return ""
	}
	names := make([]string, 0, len(in.AbandonUnknown))
	for _, name := range in.AbandonUnknown {
		names = append(names, fmt.Sprintf("%q", name))
	}
	return "metadata.annotations[" + v1alpha1.AnnotationAbandon + "]: the hub has no member " + listed(names, ", ") + ": correct the name"
}

func sortedAbandoned(members []v1alpha1.AbandonedMember) []v1alpha1.AbandonedMember {
	return slices.SortedFunc(slices.Values(members), func(a, b v1alpha1.AbandonedMember) int { return strings.Compare(a.Name, b.Name) })
}

// wait says what keeps a member from being left. A time that does not move says
// since when it does not answer.
func wait(entry *v1alpha1.ClusterStatus) string {
	if entry.Class != v1alpha1.ClassUnreachable || entry.Since == nil {
		return entry.Name + ": " + gist(entry.Outcome)
	}
	return fmt.Sprintf("%s (unreachable since %s): %s", entry.Name, entry.Since.UTC().Format(time.RFC3339), gist(entry.Outcome))
}

// wayOut adds to the hint of a member that is away how not to wait for it.
func wayOut(mc *v1alpha1.MemberCache, o *v1alpha1.Outcome) {
	if o.Class != v1alpha1.ClassUnreachable {
		return
	}
	if o.Hint != "" {
		o.Hint += "; "
	}
	o.Hint += fmt.Sprintf("to leave the children there instead: kubectl annotate cachecluster -n %s %s --overwrite %s=%s",
		mc.Namespace, mc.Spec.CacheCluster, v1alpha1.AnnotationAbandon, mc.Spec.Cluster)
}

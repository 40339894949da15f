package cli

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// verdict is what the hub's controllers say about a generation of a CacheCluster.
type verdict string

const (
	verdictReady       verdict = "ready"
	verdictProgressing verdict = "progressing"
	verdictStalled     verdict = "stalled"
)

// judge reads the status of cc for the given generation of its spec; what it
// says of an older one counts for nothing.
func judge(cc *v1alpha1.CacheCluster, generation int64) verdict {
	if cc.Status.ObservedGeneration < generation {
		return verdictProgressing
	}
	holds := func(conditionType string) bool {
		c := meta.FindStatusCondition(cc.Status.Conditions, conditionType)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= generation
	}
	switch {
	case holds(v1alpha1.ConditionReady):
		return verdictReady
	case holds(v1alpha1.ConditionStalled) && !passes(cc):
		return verdictStalled
	}
	return verdictProgressing
}

// passes says that what is in the way of a stalled cc goes by itself.
func passes(cc *v1alpha1.CacheCluster) bool {
	if meta.IsStatusConditionFalse(cc.Status.Conditions, v1alpha1.ConditionPlaced) {
		return false
	}
	blocked := 0
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.State != v1alpha1.MemberBlocked {
			continue
		}
		blocked++
		if !blockPasses(&m.Outcome) {
			return false
		}
	}
	return blocked > 0
}

// blockPasses tells blocks that end without anybody acting. The hub calls a member
// blocked during them too, since somebody can end them sooner.
func blockPasses(o *v1alpha1.Outcome) bool {
	switch o.Reason {
	case v1alpha1.ReasonDriftFight, v1alpha1.ReasonNamespaceTerminating, v1alpha1.ReasonNameConflict:
		return true
	case v1alpha1.ReasonObjectOfAnother:
		// Only the hint tells an object that is being deleted from one that stays.
		return strings.HasPrefix(o.Hint, "wait until it is gone")
	}
	return false
}

// readyCondition is cc's Ready condition, or one that says that there is none.
func readyCondition(cc *v1alpha1.CacheCluster) metav1.Condition {
	if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotObserved, Message: "the hub manager has not looked at it yet: is it running?"}
}

// summary of a CacheCluster in a line, such as "Ready 3/3 members".
func summary(cc *v1alpha1.CacheCluster) string {
	c := readyCondition(cc)
	word := map[metav1.ConditionStatus]string{
		metav1.ConditionTrue: "Ready", metav1.ConditionFalse: "NotReady", metav1.ConditionUnknown: "Unknown",
	}[c.Status]
	if cc.DeletionTimestamp != nil {
		word = "Deleting"
	}
	parts := []string{word}
	if cc.Status.Members != "" {
		parts = append(parts, cc.Status.Members+" members")
	}
	if c.Status != metav1.ConditionTrue {
		parts = append(parts, c.Reason)
	}
	return strings.Join(parts, " ")
}

// memberLine is a member in a line, such as "member-1: Progressing 1/3 PodsStarting".
// Where something is wrong, the message follows.
func memberLine(m *v1alpha1.ClusterStatus) string {
	line := fmt.Sprintf("%s: %s %d/%d", m.Name, m.State, m.ReadyReplicas, m.Replicas)
	if m.Reason != "" && m.State != v1alpha1.MemberReady {
		line += " " + m.Reason
	}
	if needsAttention(m) && m.Message != "" {
		line += ": " + oneLine(m.Message)
	}
	return line
}

// needsAttention tells members in which something is wrong from those that are
// only on their way.
func needsAttention(m *v1alpha1.ClusterStatus) bool {
	switch m.State {
	case v1alpha1.MemberDegraded, v1alpha1.MemberBlocked, v1alpha1.MemberUnreachable:
		return true
	}
	return false
}

// explainMember is the message and hint of a member that is not ready, and when it
// is tried again, each on an indented line.
func explainMember(m *v1alpha1.ClusterStatus, now time.Time) []string {
	var lines []string
	if m.Message != "" {
		lines = append(lines, "  "+oneLine(m.Message))
	}
	if m.Hint != "" {
		lines = append(lines, "  hint: "+oneLine(m.Hint))
	}
	if again := nextTry(&m.Outcome, now); again != "" {
		lines = append(lines, "  "+again)
	}
	return lines
}

// nextTry is such as "tried 4 times, next try in 12s", empty where nothing is tried
// again by itself.
func nextTry(o *v1alpha1.Outcome, now time.Time) string {
	if o.Attempt == 0 {
		return ""
	}
	text := "tried " + plural(int(o.Attempt), "time")
	switch {
	case o.RetryAt == nil:
		return text + ", goes on at the slowest pace"
	case o.RetryAt.After(now):
		return text + ", next try in " + duration.HumanDuration(o.RetryAt.Sub(now))
	default:
		return text + ", next try is due"
	}
}

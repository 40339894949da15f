package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// summary returns one line about a CacheCluster, such as "Ready 3/3 members".
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

// memberLine returns one line about a member, such as "member-1: Progressing 1/3
// PodsStarting". A member with a problem has the message too.
func memberLine(m *v1alpha1.ClusterStatus) string {
	line := fmt.Sprintf("%s: %s %d/%d", m.Name, m.State, m.ReadyReplicas, m.Replicas)
	if m.Reason != "" && m.State != v1alpha1.MemberReady {
		line += " " + m.Reason
	}
	if hasProblem(m) && m.Message != "" {
		line += ": " + oneLine(m.Message)
	}
	return line
}

// hasProblem reports whether a member has a problem. A member that only progresses
// has none.
func hasProblem(m *v1alpha1.ClusterStatus) bool {
	switch m.State {
	case v1alpha1.MemberDegraded, v1alpha1.MemberBlocked, v1alpha1.MemberUnreachable:
		return true
	}
	return false
}

// memberDetails returns message, hint and next retry of a member that is not ready,
// each on an indented line.
func memberDetails(m *v1alpha1.ClusterStatus, now time.Time) []string {
	var lines []string
	if m.Message != "" {
		lines = append(lines, "  "+oneLine(m.Message))
	}
	if m.Hint != "" {
		lines = append(lines, "  hint: "+oneLine(m.Hint))
	}
	if retry := retryText(&m.Outcome, now); retry != "" {
		lines = append(lines, "  "+retry)
	}
	return lines
}

// retryText returns a text such as "4 attempts, next retry in 12s". It is empty if
// nothing is retried.
func retryText(o *v1alpha1.Outcome, now time.Time) string {
	if o.Attempt == 0 {
		return ""
	}
	attempts := plural(int(o.Attempt), "attempt")
	switch {
	case o.RetryAt == nil:
		return attempts + ", retried at the longest interval"
	case o.RetryAt.After(now):
		return attempts + ", next retry in " + duration.HumanDuration(o.RetryAt.Sub(now))
	default:
		return attempts + ", next retry is due"
	}
}

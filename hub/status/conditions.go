package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// memberCounts counts members by state, and holds a text for each that is not ready.
type memberCounts struct {
	placed  int
	byState map[v1alpha1.MemberState]int
	// notReady has a text for each placed member that is not ready.
	notReady []string
	// removed has a text for each member that is no longer placed and may still have
	// children.
	removed []string
}

// shownMembers bounds the members that a message names; status.clusters has all.
const shownMembers = 3

func count(members []Member, entries []v1alpha1.ClusterStatus) memberCounts {
	c := memberCounts{byState: map[v1alpha1.MemberState]int{}}
	for i := range entries {
		if !members[i].Placed {
			c.removed = append(c.removed, removalText(&entries[i]))
			continue
		}
		c.placed++
		c.byState[entries[i].State]++
		if entries[i].State != v1alpha1.MemberReady {
			c.notReady = append(c.notReady, entries[i].Name+": "+messageOrReason(entries[i].Outcome))
		}
	}
	return c
}

func messageOrReason(o v1alpha1.Outcome) string {
	if o.Message == "" {
		return o.Reason
	}
	return o.Message
}

// readyMessage counts the ready members and names the others.
func (c *memberCounts) readyMessage() string {
	text := fmt.Sprintf("%d of %s ready", c.byState[v1alpha1.MemberReady], memberCount(c.placed))
	if len(c.notReady) > 0 {
		text += "; " + firstOf(c.notReady)
	}
	return text
}

// progressMessage names what changes: members that progress, and members that are
// removed.
func (c *memberCounts) progressMessage() string {
	var parts []string
	if n := c.byState[v1alpha1.MemberProgressing]; n > 0 {
		parts = append(parts, memberCount(n)+" progressing")
	}
	if len(c.removed) > 0 {
		parts = append(parts, "removing from "+firstOf(c.removed))
	}
	return strings.Join(parts, "; ")
}

// firstOf joins the first texts of a list and counts the others.
func firstOf(texts []string) string {
	if len(texts) <= shownMembers {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more (see status.clusters)", strings.Join(texts[:shownMembers], "; "), len(texts)-shownMembers)
}

// setConditions sets all conditions of a status.
func setConditions(status *v1alpha1.CacheClusterStatus, in Input, c memberCounts) {
	set := conditions.New(&status.Conditions, in.Generation, in.Now)

	placed := placedCondition(in, c)
	set.Set(v1alpha1.ConditionPlaced, placed.Status, placed.Reason, placed.Message)

	ready := readyCondition(in, c, placed)
	set.Set(v1alpha1.ConditionReady, ready.Status, ready.Reason, ready.Message)

	progressing := in.Deleting || len(c.removed) > 0 || c.byState[v1alpha1.MemberProgressing] > 0
	reason, message := v1alpha1.ReasonMembersSettled, "no member is progressing"
	if in.Deleting {
		reason, message = v1alpha1.ReasonDeleting, ready.Message
	} else if progressing {
		reason, message = v1alpha1.ReasonMembersProgressing, c.progressMessage()
	}
	set.Set(v1alpha1.ConditionProgressing, conditions.Status(progressing), reason, message)
	set.TrueOrAbsent(v1alpha1.ConditionReconciling, progressing, reason, message)

	if n := c.byState[v1alpha1.MemberDegraded]; n > 0 {
		set.True(v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersDegraded, "pods fail in "+memberCount(n))
	} else {
		set.False(v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersHealthy, "no member reports failing pods")
	}

	reason, message = summarizeDrift(in.Members)
	set.TrueOrAbsent(v1alpha1.ConditionDrifted, reason != "", reason, message)

	if abandoned := abandonedCondition(in); abandoned != nil {
		set.Set(v1alpha1.ConditionAbandoned, abandoned.Status, abandoned.Reason, abandoned.Message)
	} else {
		set.Remove(v1alpha1.ConditionAbandoned)
	}

	stalled := !in.Deleting && !progressing && (c.byState[v1alpha1.MemberBlocked] > 0 || placed.Status == metav1.ConditionFalse)
	set.TrueOrAbsent(v1alpha1.ConditionStalled, stalled, ready.Reason, ready.Message)
}

// placedCondition returns status, reason and message of Placed.
func placedCondition(in Input, c memberCounts) metav1.Condition {
	notPlaced := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case in.Deleting:
		return notPlaced(v1alpha1.ReasonDeleting, "the CacheCluster is being deleted")
	case in.PlacementProblem != "":
		return notPlaced(v1alpha1.ReasonInvalidPlacement, in.PlacementProblem)
	case in.NothingMatches != "":
		return notPlaced(v1alpha1.ReasonNoMatchingMembers, in.NothingMatches)
	}
	var unknown []string
	for i := range in.Members {
		if p := in.Members[i].Problem; p != nil && p.Reason == v1alpha1.ReasonUnknownMember {
			unknown = append(unknown, p.Message)
		}
	}
	if len(unknown) > 0 {
		return notPlaced(v1alpha1.ReasonUnknownMembers, strings.Join(unknown, "; "))
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlaced, Message: memberCount(c.placed) + " chosen"}
}

// readyCondition returns status, reason and message of Ready.
func readyCondition(in Input, c memberCounts, placed metav1.Condition) metav1.Condition {
	ready := metav1.Condition{Message: c.readyMessage()}
	ready.Status, ready.Reason = readyReason(in, c)
	if in.Deleting {
		ready.Message = "waiting for the children to be deleted in " + firstOf(c.removed)
		if text := in.unknownNames(); text != "" {
			ready.Message += "; " + text
		}
	} else if placed.Status == metav1.ConditionFalse && (c.placed == 0 || in.PlacementProblem != "") {
		ready.Message = placed.Message
	}
	return ready
}

func readyReason(in Input, c memberCounts) (metav1.ConditionStatus, string) {
	notReady := c.placed - c.byState[v1alpha1.MemberReady] - c.byState[v1alpha1.MemberUnreachable]
	switch {
	case in.Deleting:
		return metav1.ConditionFalse, v1alpha1.ReasonDeleting
	case in.PlacementProblem != "":
		return metav1.ConditionFalse, v1alpha1.ReasonInvalidPlacement
	case c.placed == 0:
		return metav1.ConditionFalse, v1alpha1.ReasonNoMatchingMembers
	case c.byState[v1alpha1.MemberBlocked] > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersBlocked
	case c.byState[v1alpha1.MemberDegraded] > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersDegraded
	case notReady > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady
	case c.byState[v1alpha1.MemberUnreachable] > 0:
		return metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable
	default:
		return metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady
	}
}

func memberCount(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

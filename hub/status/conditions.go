package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// count of the placed members by state, and the first few that need attention.
type count struct {
	placed    int
	by        map[v1alpha1.MemberState]int
	attention []string
	// leaving are members that are not placed any more and not yet known to be
	// rid of the children.
	leaving []string
}

// shown bounds the members that a message names; all of them are in status.clusters.
const shown = 3

func tally(members []Member, entries []v1alpha1.ClusterStatus) count {
	c := count{by: map[v1alpha1.MemberState]int{}}
	for i := range entries {
		if !members[i].Placed {
			c.leaving = append(c.leaving, wait(&entries[i]))
			continue
		}
		c.placed++
		c.by[entries[i].State]++
		if entries[i].State != v1alpha1.MemberReady {
			c.attention = append(c.attention, entries[i].Name+": "+gist(entries[i].Outcome))
		}
	}
	return c
}

func gist(o v1alpha1.Outcome) string {
	if o.Message == "" {
		return o.Reason
	}
	return o.Message
}

func (c *count) message() string {
	text := fmt.Sprintf("%d of %s ready", c.by[v1alpha1.MemberReady], members(c.placed))
	if len(c.attention) > 0 {
		text += "; " + few(c.attention)
	}
	return text
}

// motion says what moves: members that change, and members that are left.
func (c *count) motion() string {
	var parts []string
	if n := c.by[v1alpha1.MemberProgressing]; n > 0 {
		parts = append(parts, members(n)+" changing")
	}
	if len(c.leaving) > 0 {
		parts = append(parts, "removing from "+few(c.leaving))
	}
	return strings.Join(parts, "; ")
}

// few names the first of a list and counts the rest.
func few(of []string) string {
	if len(of) <= shown {
		return strings.Join(of, "; ")
	}
	return fmt.Sprintf("%s; and %d more (see status.clusters)", strings.Join(of[:shown], "; "), len(of)-shown)
}

// judge sets the conditions.
func judge(status *v1alpha1.CacheClusterStatus, in Input, c count) {
	put := func(kind string, is metav1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message,
			ObservedGeneration: in.Generation}, in.Now)
	}
	only := func(kind string, is bool, reason, message string) {
		if is {
			put(kind, metav1.ConditionTrue, reason, message)
		} else {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
	placed, placedReason, placedMessage := placedCondition(in, c)
	put(v1alpha1.ConditionPlaced, placed, placedReason, placedMessage)

	ready, readyReason := readyCondition(in, c)
	message := c.message()
	if in.Deleting {
		message = "waiting for the children to be gone in " + few(c.leaving)
		if text := in.misnamed(); text != "" {
			message += "; " + text
		}
	} else if placed == metav1.ConditionFalse && (c.placed == 0 || in.PlacementProblem != "") {
		message = placedMessage
	}
	put(v1alpha1.ConditionReady, ready, readyReason, message)

	moving := in.Deleting || len(c.leaving) > 0 || c.by[v1alpha1.MemberProgressing] > 0
	reason, text := v1alpha1.ReasonMembersSettled, "no member is changing"
	if in.Deleting {
		reason, text = v1alpha1.ReasonDeleting, message
	} else if moving {
		reason, text = v1alpha1.ReasonMembersProgressing, c.motion()
	}
	put(v1alpha1.ConditionProgressing, boolean(moving), reason, text)
	only(v1alpha1.ConditionReconciling, moving, reason, text)

	degraded := c.by[v1alpha1.MemberDegraded] > 0
	reason, text = v1alpha1.ReasonMembersHealthy, "no member reports failing pods"
	if degraded {
		reason, text = v1alpha1.ReasonMembersDegraded, "pods fail in "+members(c.by[v1alpha1.MemberDegraded])
	}
	put(v1alpha1.ConditionDegraded, boolean(degraded), reason, text)

	reason, text = drifted(in.Members)
	only(v1alpha1.ConditionDrifted, reason != "", reason, text)

	if told := abandoned(in); told != nil {
		put(told.Type, told.Status, told.Reason, told.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionAbandoned)
	}

	stalled := !in.Deleting && !moving && (c.by[v1alpha1.MemberBlocked] > 0 || placed == metav1.ConditionFalse)
	only(v1alpha1.ConditionStalled, stalled, readyReason, message)
}

func placedCondition(in Input, c count) (metav1.ConditionStatus, string, string) {
	switch {
	case in.Deleting:
		return metav1.ConditionFalse, v1alpha1.ReasonDeleting, "the CacheCluster is being deleted"
	case in.PlacementProblem != "":
		return metav1.ConditionFalse, v1alpha1.ReasonInvalidPlacement, in.PlacementProblem
	case in.NothingMatches != "":
		return metav1.ConditionFalse, v1alpha1.ReasonNoMatchingMembers, in.NothingMatches
	}
	var unknown []string
	for i := range in.Members {
		if p := in.Members[i].Problem; p != nil && p.Reason == v1alpha1.ReasonUnknownMember {
			unknown = append(unknown, p.Message)
		}
	}
	if len(unknown) > 0 {
		return metav1.ConditionFalse, v1alpha1.ReasonUnknownMembers, strings.Join(unknown, "; ")
	}
	return metav1.ConditionTrue, v1alpha1.ReasonPlaced, members(c.placed) + " chosen"
}

func readyCondition(in Input, c count) (metav1.ConditionStatus, string) {
	notReady := c.placed - c.by[v1alpha1.MemberReady] - c.by[v1alpha1.MemberUnreachable]
	switch {
	case in.Deleting:
		return metav1.ConditionFalse, v1alpha1.ReasonDeleting
	case in.PlacementProblem != "":
		return metav1.ConditionFalse, v1alpha1.ReasonInvalidPlacement
	case c.placed == 0:
		return metav1.ConditionFalse, v1alpha1.ReasonNoMatchingMembers
	case c.by[v1alpha1.MemberBlocked] > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersBlocked
	case c.by[v1alpha1.MemberDegraded] > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersDegraded
	case notReady > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonMembersNotReady
	case c.by[v1alpha1.MemberUnreachable] > 0:
		return metav1.ConditionUnknown, v1alpha1.ReasonMembersUnreachable
	default:
		return metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady
	}
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

func boolean(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

package controller

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

// transitions returns the events of a saved status: new trouble, its end, and drift that
// is reported instead of corrected. Pods that start, roll out and become ready are no
// events: the number of events, and of writes to the hub, would grow with every change
// that succeeds.
func transitions(old, next *v1alpha1.MemberCacheStatus) []events.Event {
	var found []events.Event
	switch was, is := trouble(old), trouble(next); {
	case is != "" && is != was:
		found = append(found, events.Event{Warning: true, Reason: next.Reason, Action: "Apply", Note: messageWithHint(&next.Outcome)})
	case is == "" && was != "" && next.State == v1alpha1.MemberReady:
		found = append(found, events.Event{Reason: v1alpha1.ReasonRecovered, Action: "Apply",
			Note: fmt.Sprintf("ready again; was %s (%s)", old.State, old.Reason)})
	}
	if next.Reason == v1alpha1.ReasonRecreating && old.Reason != next.Reason {
		found = append(found, events.Event{Reason: next.Reason, Action: "Recreate", Note: next.Message})
	}
	if next.Reason == v1alpha1.ReasonDriftFight {
		// The event above reports the conflict.
		return found
	}
	c := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionDrifted)
	refused := c != nil && c.Reason == v1alpha1.ReasonDriftRefused
	for i := range next.OpenDrifts {
		drifted := &next.OpenDrifts[i]
		if refused && !drifted.Foreign {
			// The event above reports what is refused, and the status the rest.
			continue
		}
		if slices.ContainsFunc(old.OpenDrifts, func(known v1alpha1.DriftFinding) bool { return sameDrift(&known, drifted) }) {
			continue
		}
		found = append(found, events.Event{Warning: true, Reason: driftReason(drifted), Action: "Observe", Note: driftNote(drifted)})
	}
	return found
}

// trouble returns the reason that needs a person, or empty.
func trouble(s *v1alpha1.MemberCacheStatus) string {
	switch s.State {
	case v1alpha1.MemberBlocked, v1alpha1.MemberDegraded, v1alpha1.MemberUnreachable:
		return string(s.State) + s.Reason
	case v1alpha1.MemberProgressing, v1alpha1.MemberDeleting:
		// A recreation needs no person, and has an event of its own.
		if s.Class != "" && s.Reason != v1alpha1.ReasonRecreating {
			return string(s.Class) + s.Reason
		}
	}
	return ""
}

func sameDrift(a, b *v1alpha1.DriftFinding) bool {
	return a.Object == b.Object && a.Foreign == b.Foreign && a.Deleted == b.Deleted && slices.Equal(a.Managers(), b.Managers()) && slices.Equal(a.Fields, b.Fields) && a.OmittedFields == b.OmittedFields
}

func driftReason(f *v1alpha1.DriftFinding) string {
	if f.Foreign {
		return v1alpha1.ReasonForeignFields
	}
	return v1alpha1.ReasonDriftReported
}

func driftNote(f *v1alpha1.DriftFinding) string {
	if f.Deleted {
		return f.Object + " was deleted"
	}
	did := "changed"
	if f.Foreign {
		did = "added"
	}
	return fmt.Sprintf("%s: %s %s by %s", f.Object, f.FieldList(), did, managersOf(f))
}

func messageWithHint(o *v1alpha1.Outcome) string {
	if o.Hint == "" {
		return o.Message
	}
	return o.Message + ": " + o.Hint
}

// reference returns a reference without the resource version, so that repeated events
// form a series.
func reference(mc *v1alpha1.MemberCache) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCache",
		Namespace: mc.Namespace, Name: mc.Name, UID: mc.UID}
}

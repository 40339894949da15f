package observe

import (
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// MissesPods says whether the StatefulSet's controller should be making a pod now:
// one is missing, and none of those that exist is still on its way.
func MissesPods(set *appsv1.StatefulSet) bool {
	if set == nil || set.DeletionTimestamp != nil || set.Status.ObservedGeneration < set.Generation {
		return false
	}
	wanted := int32(1)
	if set.Spec.Replicas != nil {
		wanted = *set.Spec.Replicas
	}
	return set.Status.Replicas < wanted && set.Status.ReadyReplicas >= set.Status.Replicas
}

// Events that tell what became of the controller's attempts to make pods.
const (
	reasonFailedCreate     = "FailedCreate"
	reasonSuccessfulCreate = "SuccessfulCreate"
)

// PodRefusal reads out of a StatefulSet's events why its pods cannot be made; it has no
// reason where the latest attempt succeeded, or none is known. Events outlive what
// they tell of, so a failure counts only while no later success does.
func PodRefusal(set *appsv1.StatefulSet, events []corev1.Event) v1alpha1.Outcome {
	var failed *corev1.Event
	var last time.Time
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID != "" && e.InvolvedObject.UID != set.UID {
			continue
		}
		at := happened(e)
		switch e.Reason {
		case reasonFailedCreate:
			// Of two at the same time the message decides, so that it stays the same.
			if at.After(last) || failed != nil && at.Equal(last) && e.Message < failed.Message {
				failed, last = e, at
			}
		case reasonSuccessfulCreate:
			if !at.Before(last) {
				failed, last = nil, at
			}
		}
	}
	if failed == nil {
		return v1alpha1.Outcome{}
	}
	out := v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsRefused, Message: "the member refuses pods: " + why(set.Name, failed.Message),
		Hint: fmt.Sprintf("read the events in the member: kubectl describe -n %s statefulset %s", set.Namespace, set.Name)}
	if refusal, ok := failure.Admission(failed.Message); ok {
		out.Hint = refusal.Hint
	}
	return out
}

func happened(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	return at
}

var (
	attempt   = regexp.MustCompile(`(?i)^create .* in StatefulSet \S+ failed error: `)
	forbidden = regexp.MustCompile(`^(\S+) "[^"]*" is forbidden: `)
)

// why is the cause in an event's message, without the names of single pods: which
// of them comes next is no news.
func why(set, message string) string {
	message = forbidden.ReplaceAllString(attempt.ReplaceAllString(message, ""), "")
	ordinal := regexp.MustCompile(`\b` + regexp.QuoteMeta(set) + `-\d+\b`)
	return failure.Stable(ordinal.ReplaceAllString(message, set+"-N"))
}

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

// MissesPods reports whether the StatefulSet controller should create a pod now: a pod is
// missing, and every existing pod is ready.
func MissesPods(set *appsv1.StatefulSet) bool {
	if set == nil || set.DeletionTimestamp != nil || set.Status.ObservedGeneration < set.Generation {
		return false
	}
	return set.Status.Replicas < desiredReplicas(set) && set.Status.ReadyReplicas >= set.Status.Replicas
}

// The StatefulSet controller records these events when it creates a pod.
const (
	reasonFailedCreate     = "FailedCreate"
	reasonSuccessfulCreate = "SuccessfulCreate"
)

// PodRefusal returns why the member refuses the pods of a StatefulSet, according to its events.
// The outcome has no reason if the latest attempt succeeded, or if no event exists. The API
// server keeps old events, so a later success outweighs a failure.
func PodRefusal(set *appsv1.StatefulSet, events []corev1.Event) v1alpha1.Outcome {
	var failed *corev1.Event
	var latest time.Time
	for i := range events {
		event := &events[i]
		if event.InvolvedObject.UID != "" && event.InvolvedObject.UID != set.UID {
			continue
		}
		at := timeOf(event)
		switch event.Reason {
		case reasonFailedCreate:
			// The smaller message wins at equal times, so that the order of events changes nothing.
			if at.After(latest) || failed != nil && at.Equal(latest) && event.Message < failed.Message {
				failed, latest = event, at
			}
		case reasonSuccessfulCreate:
			if !at.Before(latest) {
				failed, latest = nil, at
			}
		}
	}
	if failed == nil {
		return v1alpha1.Outcome{}
	}
	outcome := v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsRefused,
		Message: fmt.Sprintf("the member refuses the pods of StatefulSet/%s: %s", set.Name, refusalCause(set.Name, failed.Message)),
		Hint:    fmt.Sprintf("read the events in the member: kubectl describe -n %s statefulset %s", set.Namespace, set.Name)}
	if refusal, ok := failure.Admission(failed.Message); ok {
		outcome.Hint = refusal.Hint
	}
	return outcome
}

func timeOf(event *corev1.Event) time.Time {
	at := event.LastTimestamp.Time
	if event.Series != nil && event.Series.LastObservedTime.After(at) {
		at = event.Series.LastObservedTime.Time
	}
	if at.IsZero() {
		at = event.EventTime.Time
	}
	if at.IsZero() {
		at = event.CreationTimestamp.Time
	}
	return at
}

var (
	attemptPrefix   = regexp.MustCompile(`(?i)^create .* in StatefulSet \S+ failed error: `)
	forbiddenPrefix = regexp.MustCompile(`^(\S+) "[^"]*" is forbidden: `)
)

// refusalCause returns the cause in an event's message, without ordinals. The message of the
// status must not change with the pod that the controller tries next.
func refusalCause(set, message string) string {
	message = forbiddenPrefix.ReplaceAllString(attemptPrefix.ReplaceAllString(message, ""), "")
	ordinal := regexp.MustCompile(`\b` + regexp.QuoteMeta(set) + `-\d+\b`)
	return failure.Stable(ordinal.ReplaceAllString(message, set+"-N"))
}

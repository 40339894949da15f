package observe

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Observation is the state of a cache in one member.
type Observation struct {
	State         v1alpha1.MemberState
	Replicas      int32
	ReadyReplicas int32
	Outcome       v1alpha1.Outcome
}

// Observe sums up a StatefulSet and its pods. A nil set is one that is not there.
func Observe(set *appsv1.StatefulSet, live []corev1.Pod) Observation {
	if set == nil {
		return Observation{State: v1alpha1.MemberProgressing,
			Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonPending, Message: "the StatefulSet is not there yet"}}
	}
	wanted := int32(1)
	if set.Spec.Replicas != nil {
		wanted = *set.Spec.Replicas
	}
	seen := Observation{Replicas: set.Status.Replicas, ReadyReplicas: set.Status.ReadyReplicas}
	if set.Status.ObservedGeneration < set.Generation {
		// The counts are about an older spec: they can't make this one ready. A first
		// one says what it will say next, so that starting is one write and not two.
		if set.Status.ObservedGeneration == 0 {
			return seen.starting(set, wanted)
		}
		return seen.progressing(v1alpha1.ReasonRollingOut, "the member has not worked off the latest change yet")
	}
	if trouble := worst(live); trouble.Reason != "" && seen.ReadyReplicas < wanted {
		seen.State, seen.Outcome = v1alpha1.MemberDegraded, trouble
		return seen
	}
	switch s := set.Status; {
	case s.Replicas > wanted:
		return seen.progressing(v1alpha1.ReasonRollingOut, "scaling down to "+pods(wanted))
	case s.ReadyReplicas < wanted:
		return seen.starting(set, wanted)
	case wanted > 0 && s.UpdatedReplicas < wanted:
		return seen.progressing(v1alpha1.ReasonRollingOut, fmt.Sprintf("waiting for %s to run the new revision", pods(wanted)))
	case s.AvailableReplicas < wanted:
		return seen.starting(set, wanted)
	case wanted == 0:
		seen.State = v1alpha1.MemberReady
		seen.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonScaledToZero, Message: "0 pods wanted and none there"}
	default:
		seen.State = v1alpha1.MemberReady
		seen.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsReady, Message: ready(wanted)}
	}
	return seen
}

// starting says the same while pods come up one after the other, each of which has
// to be ready for minReadySeconds before the next one comes.
func (o Observation) starting(set *appsv1.StatefulSet, wanted int32) Observation {
	message := fmt.Sprintf("waiting for %s to be ready", pods(wanted))
	if seconds := set.Spec.MinReadySeconds; seconds > 0 {
		message += fmt.Sprintf(", each for minReadySeconds (%d s)", seconds)
		if wanted == 1 {
			message = fmt.Sprintf("waiting for 1 pod to be ready for minReadySeconds (%d s)", seconds)
		}
	}
	return o.progressing(v1alpha1.ReasonPodsStarting, message)
}

// progressing leaves counts out of the message: they stand beside it, and a
// message that changes with each pod would be a write with each pod.
func (o Observation) progressing(reason, message string) Observation {
	o.State = v1alpha1.MemberProgressing
	o.Outcome = v1alpha1.Outcome{Reason: reason, Message: message}
	return o
}

func pods(n int32) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func ready(n int32) string {
	if n == 1 {
		return "the pod is ready"
	}
	return fmt.Sprintf("all %d pods ready", n)
}

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
func Observe(set *appsv1.StatefulSet, pods []corev1.Pod) Observation {
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
			return seen.starting(wanted)
		}
		return seen.progressing(v1alpha1.ReasonRollingOut, "the member has not worked off the latest change yet")
	}
	if trouble := worst(pods); trouble.Reason != "" && seen.ReadyReplicas < wanted {
		seen.State, seen.Outcome = v1alpha1.MemberDegraded, trouble
		return seen
	}
	switch s := set.Status; {
	case s.Replicas > wanted:
		return seen.progressing(v1alpha1.ReasonRollingOut, fmt.Sprintf("scaling down to %d pods", wanted))
	case s.ReadyReplicas < wanted:
		return seen.starting(wanted)
	case wanted > 0 && s.UpdatedReplicas < wanted:
		return seen.progressing(v1alpha1.ReasonRollingOut, fmt.Sprintf("waiting for %d pods to run the new revision", wanted))
	case s.AvailableReplicas < wanted:
		return seen.progressing(v1alpha1.ReasonPodsStarting,
			fmt.Sprintf("waiting for %d pods to be ready for minReadySeconds (%d s)", wanted, set.Spec.MinReadySeconds))
	case wanted == 0:
		seen.State = v1alpha1.MemberReady
		seen.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonScaledToZero, Message: "0 pods wanted and none there"}
	default:
		seen.State = v1alpha1.MemberReady
		seen.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsReady, Message: fmt.Sprintf("all %d pods ready", wanted)}
	}
	return seen
}

func (o Observation) starting(wanted int32) Observation {
	return o.progressing(v1alpha1.ReasonPodsStarting, fmt.Sprintf("waiting for %d pods to be ready", wanted))
}

// progressing leaves counts out of the message: they stand beside it, and a
// message that changes with each pod would be a write with each pod.
func (o Observation) progressing(reason, message string) Observation {
	o.State = v1alpha1.MemberProgressing
	o.Outcome = v1alpha1.Outcome{Reason: reason, Message: message}
	return o
}

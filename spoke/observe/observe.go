package observe

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Observation is the state of a cache in one member.
type Observation struct {
	State v1alpha1.MemberState
	// Replicas and ReadyReplicas are the counts of the StatefulSet's status.
	Replicas      int32
	ReadyReplicas int32
	// Outcome is the reason of the state.
	Outcome v1alpha1.Outcome
}

// Observe returns the state of a StatefulSet and its pods. A nil set means that the
// StatefulSet does not exist.
func Observe(set *appsv1.StatefulSet, pods []corev1.Pod) Observation {
	if set == nil {
		return Observation{State: v1alpha1.MemberProgressing,
			Outcome: v1alpha1.Outcome{Reason: v1alpha1.ReasonPending, Message: "the StatefulSet does not exist yet"}}
	}
	desired := desiredReplicas(set)
	observed := Observation{Replicas: set.Status.Replicas, ReadyReplicas: set.Status.ReadyReplicas}
	if set.Status.ObservedGeneration < set.Generation {
		// The counts belong to an older spec, so they prove nothing about this one. A new
		// StatefulSet gets the message of its start at once, which saves a write.
		if set.Status.ObservedGeneration == 0 {
			return observed.starting(set, desired)
		}
		return observed.progressing(v1alpha1.ReasonRollingOut, "the StatefulSet controller has not observed the latest change yet")
	}
	if problem := worstProblem(pods); problem.Reason != "" && observed.ReadyReplicas < desired {
		observed.State, observed.Outcome = v1alpha1.MemberDegraded, problem
		return observed
	}
	switch s := set.Status; {
	case s.Replicas > desired:
		return observed.progressing(v1alpha1.ReasonRollingOut, "scaling the StatefulSet down to "+podCount(desired))
	case s.ReadyReplicas < desired:
		return observed.starting(set, desired)
	case desired > 0 && s.UpdatedReplicas < desired:
		return observed.progressing(v1alpha1.ReasonRollingOut, fmt.Sprintf("waiting for %s to run the new revision", podCount(desired)))
	case s.AvailableReplicas < desired:
		return observed.starting(set, desired)
	case desired == 0:
		observed.State = v1alpha1.MemberReady
		observed.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonScaledToZero, Message: "the desired number of replicas is 0, and no pod exists"}
	default:
		observed.State = v1alpha1.MemberReady
		observed.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsReady, Message: allReady(desired)}
	}
	return observed
}

// starting returns the observation of pods that start. Its message does not change while the
// StatefulSet controller starts one pod after another, minReadySeconds apart.
func (o Observation) starting(set *appsv1.StatefulSet, desired int32) Observation {
	message := fmt.Sprintf("waiting for %s to be ready", podCount(desired))
	if seconds := set.Spec.MinReadySeconds; seconds > 0 {
		message += fmt.Sprintf(", each for minReadySeconds (%d s)", seconds)
		if desired == 1 {
			message = fmt.Sprintf("waiting for 1 pod to be ready for minReadySeconds (%d s)", seconds)
		}
	}
	return o.progressing(v1alpha1.ReasonPodsStarting, message)
}

// progressing returns the observation of a rollout. The message must not contain counts, which
// the status has in fields of their own: a message with a count is a write for each pod.
func (o Observation) progressing(reason, message string) Observation {
	o.State = v1alpha1.MemberProgressing
	o.Outcome = v1alpha1.Outcome{Reason: reason, Message: message}
	return o
}

// desiredReplicas returns the desired number of pods. The default of the API server is 1.
func desiredReplicas(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

func podCount(n int32) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func allReady(n int32) string {
	if n == 1 {
		return "the only pod of the cache is ready"
	}
	return fmt.Sprintf("all %d pods of the cache are ready", n)
}

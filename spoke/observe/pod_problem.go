package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// problemReasons are the reasons of PodProblem, the most severe one first.
var problemReasons = []string{v1alpha1.ReasonImagePullFailing, v1alpha1.ReasonPodsCrashing, v1alpha1.ReasonConfigMissing, v1alpha1.ReasonPodsUnschedulable}

// PodProblem returns why a pod cannot become ready without an intervention. The outcome has no
// reason if there is no problem. Observe reads nothing else of a pod, so a pod event with
// an unchanged PodProblem changes no Observation.
func PodProblem(pod *corev1.Pod) v1alpha1.Outcome {
	// A failing init container, such as one that a webhook adds, blocks the others.
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			if problem := containerProblem(pod, &containers[i]); problem.Reason != "" {
				return problem
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			hint := describePod(pod) + "; add nodes to the member, or lower memory, resources or replicas for it with an override"
			if strings.Contains(strings.ToLower(c.Message), "persistentvolumeclaim") {
				hint = "read in the member why the claims have no volume: kubectl get pvc,storageclass -n " + pod.Namespace +
					"; set spec.storage.storageClassName to a class of the member, or define a default class in the member"
			}
			return v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsUnschedulable,
				Message: fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, c.Message), Hint: hint}
		}
	}
	return v1alpha1.Outcome{}
}

// worstProblem returns the most severe problem of the pods. Of equally severe ones, that of the
// first pod by name wins, so that the order of pods changes nothing.
func worstProblem(pods []corev1.Pod) v1alpha1.Outcome {
	byName := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var worst v1alpha1.Outcome
	for i := range byName {
		problem := PodProblem(&byName[i])
		if problem.Reason != "" && (worst.Reason == "" || severity(problem.Reason) < severity(worst.Reason)) {
			worst = problem
		}
	}
	return worst
}

// severity returns the rank of a reason, the most severe one first. A reason that
// problemReasons does not list ranks last.
func severity(reason string) int {
	if i := slices.Index(problemReasons, reason); i >= 0 {
		return i
	}
	return len(problemReasons)
}

// containerProblem returns the problem of one container. The message omits the waiting reason,
// because the kubelet alternates between ErrImagePull and ImagePullBackOff.
func containerProblem(pod *corev1.Pod, c *corev1.ContainerStatus) v1alpha1.Outcome {
	if c.State.Waiting == nil {
		return v1alpha1.Outcome{}
	}
	switch c.State.Waiting.Reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonImagePullFailing,
			Message: fmt.Sprintf("pod %s: container %s: cannot pull the image %q", pod.Name, c.Name, c.Image),
			Hint:    describePod(pod) + "; correct spec.image or spec.version, or the access of the member to the registry"}
	case "CrashLoopBackOff", "RunContainerError", "CreateContainerError":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsCrashing,
			Message: fmt.Sprintf("pod %s: container %s fails repeatedly", pod.Name, c.Name),
			Hint:    fmt.Sprintf("read the log in the member: kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, c.Name)}
	case "CreateContainerConfigError":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonConfigMissing,
			Message: fmt.Sprintf("pod %s: container %s cannot be created: %s", pod.Name, c.Name, c.State.Waiting.Message),
			Hint:    describePod(pod) + "; create the missing Secret or ConfigMap in the member, or correct spec.pod"}
	}
	return v1alpha1.Outcome{}
}

func describePod(pod *corev1.Pod) string {
	return fmt.Sprintf("read the cause in the member: kubectl describe pod -n %s %s", pod.Namespace, pod.Name)
}

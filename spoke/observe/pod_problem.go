package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// troubles are the reasons of PodProblem, the worst first.
var troubles = []string{v1alpha1.ReasonImagePullFailing, v1alpha1.ReasonPodsCrashing, v1alpha1.ReasonConfigMissing, v1alpha1.ReasonPodsUnschedulable}

// PodProblem is what keeps a pod from being ready however long one waits; it has no
// reason where nothing does. Observe reads nothing else of a pod: while a pod's
// PodProblem stays the same, so does every Observation.
func PodProblem(pod *corev1.Pod) v1alpha1.Outcome {
	// Init containers come first, as of a sidecar that a webhook adds.
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			if t := waiting(pod, &containers[i]); t.Reason != "" {
				return t
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			hint := "add nodes to the member, or lower memory, resources or replicas for it with an override"
			if strings.Contains(strings.ToLower(c.Message), "persistentvolumeclaim") {
				hint = "see why its claims have no volume: kubectl get pvc,storageclass -n " + pod.Namespace +
					" in the member; spec.storage.storageClassName must name a class of the member, or the member have a default one"
			}
			return v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsUnschedulable,
				Message: fmt.Sprintf("pod %s fits on no node: %s", pod.Name, c.Message), Hint: hint}
		}
	}
	return v1alpha1.Outcome{}
}

// worst is the worst PodProblem; among equals that of the first pod by name, so that
// the same state gives the same bytes.
func worst(pods []corev1.Pod) v1alpha1.Outcome {
	byName := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var found v1alpha1.Outcome
	for i := range byName {
		t := PodProblem(&byName[i])
		if t.Reason != "" && (found.Reason == "" || slices.Index(troubles, t.Reason) < slices.Index(troubles, found.Reason)) {
			found = t
		}
	}
	return found
}

func waiting(pod *corev1.Pod, c *corev1.ContainerStatus) v1alpha1.Outcome {
	if c.State.Waiting == nil {
		return v1alpha1.Outcome{}
	}
	switch c.State.Waiting.Reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonImagePullFailing,
			Message: fmt.Sprintf("pod %s: cannot pull %q", pod.Name, c.Image),
			Hint:    "check spec.image and spec.version, and that the member can reach the registry"}
	case "CrashLoopBackOff", "RunContainerError", "CreateContainerError":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonPodsCrashing,
			Message: fmt.Sprintf("pod %s: container %s keeps failing", pod.Name, c.Name),
			Hint:    fmt.Sprintf("read its log in the member: kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, c.Name)}
	case "CreateContainerConfigError":
		return v1alpha1.Outcome{Reason: v1alpha1.ReasonConfigMissing,
			Message: fmt.Sprintf("pod %s: container %s cannot be set up: %s", pod.Name, c.Name, c.State.Waiting.Message),
			Hint:    "create what the message names in the member, or correct spec.pod"}
	}
	return v1alpha1.Outcome{}
}

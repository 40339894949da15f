package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodProblem_ChangesOnlyWithCause(t *testing.T) {
	waiting := func(reason, message string) *corev1.Pod {
		pod := waitingPod("s-0", reason)
		pod.Status.ContainerStatuses[0].State.Waiting.Message = message
		return &pod
	}
	for _, c := range []struct {
		name          string
		before, after *corev1.Pod
		same          bool
	}{
		{"the next back-off", waiting("ImagePullBackOff", "back-off 10s"), waiting("ImagePullBackOff", "back-off 20s"), true},
		{"a pull between two back-offs", waiting("ImagePullBackOff", "back-off 10s"), waiting("ErrImagePull", "not found"), true},
		{"another Secret is missing", waiting("CreateContainerConfigError", `secret "x" not found`), waiting("CreateContainerConfigError", `secret "y" not found`), false},
		{"another problem", waiting("ImagePullBackOff", ""), waiting("CrashLoopBackOff", ""), false},
		{"the problem is solved", waiting("CrashLoopBackOff", ""), waiting("ContainerCreating", ""), false},
	} {
		if same := PodProblem(c.before) == PodProblem(c.after); same != c.same {
			t.Errorf("%s: problem unchanged: %t, want %t", c.name, same, c.same)
		}
	}
}

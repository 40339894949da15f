package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestATroubleChangesOnlyWithWhatIsSaidAboutIt(t *testing.T) {
	saying := func(reason, message string) *corev1.Pod {
		pod := waitingPod("s-0", reason)
		pod.Status.ContainerStatuses[0].State.Waiting.Message = message
		return &pod
	}
	for _, c := range []struct {
		name          string
		before, after *corev1.Pod
		same          bool
	}{
		{"the next back-off", saying("ImagePullBackOff", "back-off 10s"), saying("ImagePullBackOff", "back-off 20s"), true},
		{"a pull between two back-offs", saying("ImagePullBackOff", "back-off 10s"), saying("ErrImagePull", "not found"), true},
		{"another Secret is missing", saying("CreateContainerConfigError", `secret "x" not found`), saying("CreateContainerConfigError", `secret "y" not found`), false},
		{"another trouble", saying("ImagePullBackOff", ""), saying("CrashLoopBackOff", ""), false},
		{"no trouble any more", saying("CrashLoopBackOff", ""), saying("ContainerCreating", ""), false},
	} {
		if same := PodProblem(c.before) == PodProblem(c.after); same != c.same {
			t.Errorf("%s: the same %t, want %t", c.name, same, c.same)
		}
	}
}

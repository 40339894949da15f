package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// statefulSet returns a StatefulSet whose controller observed its spec and reports counts.
func statefulSet(replicas int32, status appsv1.StatefulSetStatus) *appsv1.StatefulSet {
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = 2
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions", Generation: 2},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, MinReadySeconds: 60}, Status: status,
	}
}

func counts(all, ready, updated, available int32) appsv1.StatefulSetStatus {
	return appsv1.StatefulSetStatus{Replicas: all, ReadyReplicas: ready, UpdatedReplicas: updated, AvailableReplicas: available}
}

func waitingPod(name, reason string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "memcached", Image: "memcached:9", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: `secret "x" not found`}}}}}}
}

func unschedulable(name string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}}}
}

func TestPodProblem_HintForUnboundClaimNamesClaims(t *testing.T) {
	pod := unschedulable("s-0")
	pod.Namespace = "shop"
	if hint := PodProblem(&pod).Hint; !strings.Contains(hint, "add nodes") {
		t.Errorf("hint without a node: %q", hint)
	}
	pod.Status.Conditions[0].Message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	if hint := PodProblem(&pod).Hint; !strings.Contains(hint, "kubectl get pvc,storageclass -n shop") || strings.Contains(hint, "add nodes") {
		t.Errorf("hint without a volume: %q", hint)
	}
}

func TestPodProblem_ReportsInitContainer(t *testing.T) {
	pod := waitingPod("s-0", "CrashLoopBackOff")
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
	pod.Status.InitContainerStatuses[0].Name = "mesh-init"
	if got := PodProblem(&pod); got.Reason != v1alpha1.ReasonPodsCrashing || !strings.Contains(got.Message, "mesh-init") {
		t.Errorf("problem %+v", got)
	}
}

func TestObserve_DerivesStateFromStatefulSetAndPods(t *testing.T) {
	stale := statefulSet(3, counts(3, 3, 3, 3))
	stale.Generation = 3
	fresh := statefulSet(3, appsv1.StatefulSetStatus{})
	fresh.Status.ObservedGeneration = 0
	defaulted := statefulSet(1, counts(1, 1, 1, 1))
	defaulted.Spec.Replicas = nil
	for _, c := range []struct {
		name, why string
		set       *appsv1.StatefulSet
		pods      []corev1.Pod
		state     v1alpha1.MemberState
		reason    string
		message   string
	}{
		{"no StatefulSet", "the StatefulSet was not created yet", nil, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPending, "does not exist yet"},
		{"new StatefulSet", "the controller observed nothing yet", fresh, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods"},
		{"counts of an older spec", "they prove nothing about the new spec", stale, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "latest change"},
		{"scaling down", "too many pods are not the desired state", statefulSet(2, counts(3, 3, 3, 3)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "down to 2"},
		{"scaling down to zero", "the last pod still exists", statefulSet(0, counts(1, 1, 1, 1)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "down to 0"},
		{"starting", "some pods are not ready", statefulSet(3, counts(3, 2, 3, 2)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods"},
		{"old revision", "ready pods of the old revision are not the desired state", statefulSet(3, counts(3, 3, 1, 3)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "new revision"},
		{"not ready long enough", "minReadySeconds counts", statefulSet(3, counts(3, 3, 3, 2)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "minReadySeconds (60 s)"},
		{"ordered start with minReadySeconds", "each pod must be ready for minReadySeconds before the next one starts", statefulSet(3, counts(1, 1, 1, 0)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods to be ready, each for minReadySeconds (60 s)"},
		{"single pod not ready long enough", "the message uses the singular", statefulSet(1, counts(1, 1, 1, 0)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 1 pod to be ready for minReadySeconds (60 s)"},
		{"ready", "every count equals the desired one", statefulSet(3, counts(3, 3, 3, 3)), nil, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, "all 3 pods of the cache are ready"},
		{"ready by default", "the default of replicas is 1", defaulted, nil, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, "the only pod of the cache is ready"},
		{"scaled to zero", "no pod is desired and no pod exists", statefulSet(0, counts(0, 0, 0, 0)), nil, v1alpha1.MemberReady, v1alpha1.ReasonScaledToZero, "replicas is 0"},
		{"image that cannot be pulled", "the registry does not have the image", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ImagePullBackOff")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, `pod s-0: container memcached: cannot pull the image "memcached:9"`},
		{"first pull of an image", "the reason is the same from the first pull on", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ErrImagePull")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "s-0"},
		{"invalid image name", "the kubelet refuses the name", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "InvalidImageName")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "s-0"},
		{"crashing container", "the container exits repeatedly", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "CrashLoopBackOff")}, v1alpha1.MemberDegraded, v1alpha1.ReasonPodsCrashing, "pod s-0: container memcached fails repeatedly"},
		{"missing Secret", "the container refers to a Secret that does not exist", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "CreateContainerConfigError")}, v1alpha1.MemberDegraded, v1alpha1.ReasonConfigMissing, `secret "x" not found`},
		{"unschedulable pod", "no node has room", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{unschedulable("s-0")}, v1alpha1.MemberDegraded, v1alpha1.ReasonPodsUnschedulable, "0/1 nodes"},
		{"container in creation", "the creation of a container is not a problem", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ContainerCreating")}, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, ""},
		{"problem of a surplus pod", "enough other pods are ready", statefulSet(1, counts(1, 1, 1, 1)), []corev1.Pod{waitingPod("s-1", "CrashLoopBackOff")}, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, ""},
		{"problem with an older spec", "the controller has not observed the new spec", stale, []corev1.Pod{waitingPod("s-1", "CrashLoopBackOff")}, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, ""},
		{"several problems", "a failing image pull is more severe than an unschedulable pod", statefulSet(3, counts(3, 0, 3, 0)),
			[]corev1.Pod{unschedulable("s-0"), waitingPod("s-1", "CrashLoopBackOff"), waitingPod("s-2", "ErrImagePull")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "pod s-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Observe(c.set, c.pods)
			if got.State != c.state || got.Outcome.Reason != c.reason || !strings.Contains(got.Outcome.Message, c.message) {
				t.Errorf("%s: %s/%s %q, want %s/%s %q", c.why, got.State, got.Outcome.Reason, got.Outcome.Message, c.state, c.reason, c.message)
			}
			if got.State == v1alpha1.MemberDegraded && got.Outcome.Hint == "" {
				t.Errorf("%q has no hint", got.Outcome.Message)
			}
			if c.set != nil && (got.Replicas != c.set.Status.Replicas || got.ReadyReplicas != c.set.Status.ReadyReplicas) {
				t.Errorf("counts %d/%d", got.ReadyReplicas, got.Replicas)
			}
		})
	}
}

func TestObserve_IgnoresOrderOfPods(t *testing.T) {
	pods := []corev1.Pod{waitingPod("s-2", "CrashLoopBackOff"), waitingPod("s-0", "CrashLoopBackOff"), unschedulable("s-1")}
	set := statefulSet(3, counts(3, 0, 3, 0))
	want := Observe(set, pods)
	if !strings.Contains(want.Outcome.Message, "pod s-0") {
		t.Errorf("message %q, want the first pod by name", want.Outcome.Message)
	}
	reversed := slices.Clone(pods)
	slices.Reverse(reversed)
	if diff := cmp.Diff(want, Observe(set, reversed)); diff != "" {
		t.Errorf("order changes the observation (-want +got):\n%s", diff)
	}
	if pods[0].Name != "s-2" {
		t.Error("Observe sorted the pods of its caller")
	}
}

func TestObserve_KeepsMessageWhilePodsStart(t *testing.T) {
	// A message with a count would be a write for each pod.
	want := Observe(statefulSet(100, counts(0, 0, 0, 0)), nil).Outcome
	for ready := range int32(100) {
		if diff := cmp.Diff(want, Observe(statefulSet(100, counts(ready, ready, ready, 0)), nil).Outcome); diff != "" {
			t.Fatalf("%d ready pods (-want +got):\n%s", ready, diff)
		}
	}
}

func TestObserve_IsNotReadyForUnobservedGeneration(t *testing.T) {
	for generation := int64(1); generation < 5; generation++ {
		for observed := range generation {
			set := statefulSet(1, counts(1, 1, 1, 1))
			set.Generation, set.Status.ObservedGeneration = generation, observed
			if got := Observe(set, nil); got.State == v1alpha1.MemberReady {
				t.Errorf("generation %d, observed generation %d: state Ready", generation, observed)
			}
		}
	}
}

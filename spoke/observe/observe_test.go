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

// statefulSet wants replicas pods, has seen its spec, and reports counts.
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

func TestAPodWithoutAVolumeIsNotHelpedByNodes(t *testing.T) {
	pod := unschedulable("s-0")
	pod.Namespace = "shop"
	if hint := PodProblem(&pod).Hint; !strings.Contains(hint, "add nodes") {
		t.Errorf("no node: %q", hint)
	}
	pod.Status.Conditions[0].Message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	if hint := PodProblem(&pod).Hint; !strings.Contains(hint, "kubectl get pvc,storageclass -n shop") || strings.Contains(hint, "add nodes") {
		t.Errorf("no volume: %q", hint)
	}
}

func TestAnInitContainerThatFailsIsTheTrouble(t *testing.T) {
	pod := waitingPod("s-0", "CrashLoopBackOff")
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
	pod.Status.InitContainerStatuses[0].Name = "mesh-init"
	if is := PodProblem(&pod); is.Reason != v1alpha1.ReasonPodsCrashing || !strings.Contains(is.Message, "mesh-init") {
		t.Errorf("%+v", is)
	}
}

func TestTheStateOfACacheIsReadOutOfItsStatefulSetAndPods(t *testing.T) {
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
		says      string
	}{
		{"nothing there", "the StatefulSet has not come yet", nil, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPending, "not there yet"},
		{"not worked on yet", "its controller has seen nothing", fresh, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods"},
		{"counts of an older spec", "they can't make the new one ready", stale, nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "latest change"},
		{"scaling down", "too many pods are not the wish", statefulSet(2, counts(3, 3, 3, 3)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "down to 2"},
		{"scaling down to nothing", "0 is reached when the last pod is gone", statefulSet(0, counts(1, 1, 1, 1)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "down to 0"},
		{"starting", "some pods are not ready", statefulSet(3, counts(3, 2, 3, 2)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods"},
		{"old revision", "ready pods of the old revision are not the wish", statefulSet(3, counts(3, 3, 1, 3)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, "new revision"},
		{"not ready long enough", "minReadySeconds counts", statefulSet(3, counts(3, 3, 3, 2)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "minReadySeconds (60 s)"},
		{"one after the other", "each is ready for a while before the next one comes", statefulSet(3, counts(1, 1, 1, 0)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 3 pods to be ready, each for minReadySeconds (60 s)"},
		{"one that is not ready long enough", "one is not many", statefulSet(1, counts(1, 1, 1, 0)), nil, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, "waiting for 1 pod to be ready for minReadySeconds (60 s)"},
		{"ready", "every count is as wanted", statefulSet(3, counts(3, 3, 3, 3)), nil, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, "all 3 pods ready"},
		{"ready by default", "no replicas means one", defaulted, nil, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, "the pod is ready"},
		{"scaled to zero", "nothing wanted, nothing there", statefulSet(0, counts(0, 0, 0, 0)), nil, v1alpha1.MemberReady, v1alpha1.ReasonScaledToZero, "0 pods"},
		{"image", "the registry does not have it", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ImagePullBackOff")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, `pod s-0: cannot pull "memcached:9"`},
		{"first try of an image", "the same reason from the first try on", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ErrImagePull")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "s-0"},
		{"no image's name", "the kubelet refuses it", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "InvalidImageName")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "s-0"},
		{"crash", "the container ends again and again", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "CrashLoopBackOff")}, v1alpha1.MemberDegraded, v1alpha1.ReasonPodsCrashing, "container memcached keeps failing"},
		{"missing config", "a Secret is not there", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "CreateContainerConfigError")}, v1alpha1.MemberDegraded, v1alpha1.ReasonConfigMissing, `secret "x" not found`},
		{"no node", "nothing fits", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{unschedulable("s-0")}, v1alpha1.MemberDegraded, v1alpha1.ReasonPodsUnschedulable, "0/1 nodes"},
		{"creating", "a pod that is being set up is no trouble", statefulSet(1, counts(1, 0, 1, 0)), []corev1.Pod{waitingPod("s-0", "ContainerCreating")}, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, ""},
		{"trouble of a pod that is not needed", "enough others are ready", statefulSet(1, counts(1, 1, 1, 1)), []corev1.Pod{waitingPod("s-1", "CrashLoopBackOff")}, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, ""},
		{"trouble of an older spec", "counts of an older spec say nothing about this one", stale, []corev1.Pod{waitingPod("s-1", "CrashLoopBackOff")}, v1alpha1.MemberProgressing, v1alpha1.ReasonRollingOut, ""},
		{"the worst trouble counts", "an image nobody can pull beats a full node", statefulSet(3, counts(3, 0, 3, 0)),
			[]corev1.Pod{unschedulable("s-0"), waitingPod("s-1", "CrashLoopBackOff"), waitingPod("s-2", "ErrImagePull")}, v1alpha1.MemberDegraded, v1alpha1.ReasonImagePullFailing, "pod s-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Observe(c.set, c.pods)
			if got.State != c.state || got.Outcome.Reason != c.reason || !strings.Contains(got.Outcome.Message, c.says) {
				t.Errorf("%s: %s/%s %q, want %s/%s %q", c.why, got.State, got.Outcome.Reason, got.Outcome.Message, c.state, c.reason, c.says)
			}
			if got.State == v1alpha1.MemberDegraded && got.Outcome.Hint == "" {
				t.Errorf("%q says no way out", got.Outcome.Message)
			}
			if c.set != nil && (got.Replicas != c.set.Status.Replicas || got.ReadyReplicas != c.set.Status.ReadyReplicas) {
				t.Errorf("counts %d/%d", got.ReadyReplicas, got.Replicas)
			}
		})
	}
}

func TestTheOrderOfPodsDoesNotShow(t *testing.T) {
	pods := []corev1.Pod{waitingPod("s-2", "CrashLoopBackOff"), waitingPod("s-0", "CrashLoopBackOff"), unschedulable("s-1")}
	set := statefulSet(3, counts(3, 0, 3, 0))
	want := Observe(set, pods)
	if !strings.Contains(want.Outcome.Message, "pod s-0") {
		t.Errorf("among equals the first by name counts: %q", want.Outcome.Message)
	}
	order := slices.Clone(pods)
	slices.Reverse(order)
	if diff := cmp.Diff(want, Observe(set, order)); diff != "" {
		t.Errorf("another order, another state:\n%s", diff)
	}
	if pods[0].Name != "s-2" {
		t.Error("the caller's pods were sorted")
	}
}

// Pods come one by one; a message that counted them would be a write with each.
func TestTheMessageStaysTheSameWhilePodsComeUp(t *testing.T) {
	want := Observe(statefulSet(100, counts(0, 0, 0, 0)), nil).Outcome
	for ready := range int32(100) {
		if diff := cmp.Diff(want, Observe(statefulSet(100, counts(ready, ready, ready, 0)), nil).Outcome); diff != "" {
			t.Fatalf("at %d pods:\n%s", ready, diff)
		}
	}
}

func TestNothingIsReadyThatTheStatefulSetControllerHasNotSeen(t *testing.T) {
	for generation := int64(1); generation < 5; generation++ {
		for observed := range generation {
			set := statefulSet(1, counts(1, 1, 1, 1))
			set.Generation, set.Status.ObservedGeneration = generation, observed
			if got := Observe(set, nil); got.State == v1alpha1.MemberReady {
				t.Errorf("generation %d, seen %d: ready", generation, observed)
			}
		}
	}
}

package memberqueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnchanged_FiltersEventsWithoutNews(t *testing.T) {
	set := func(version string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	pod := func(version, waiting string, ready bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		state := corev1.ContainerStatus{Name: "memcached", Ready: ready}
		if waiting != "" {
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting}
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{state}
		return p
	}
	for _, c := range []struct {
		name        string
		old, object any
		want        bool
	}{
		{"a resync", set("1"), set("1"), true},
		{"a changed child", set("1"), set("2"), false},
		{"a pod that became ready: the status of its StatefulSet shows it", pod("1", "", false), pod("2", "", true), true},
		{"a pod in trouble", pod("1", "", false), pod("2", "CrashLoopBackOff", false), false},
		{"a pod out of trouble", pod("1", "CrashLoopBackOff", false), pod("2", "", true), false},
	} {
		if got := unchanged(c.old, c.object); got != c.want {
			t.Errorf("%s: unchanged %t, want %t", c.name, got, c.want)
		}
	}
}

func TestStripPod_DropsSpec(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "u", ResourceVersion: "1", Labels: map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}, Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached"}}}}
	got, err := stripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := pod.DeepCopy()
	want.Spec, want.ManagedFields = corev1.PodSpec{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestUnchanged_PassesAnotherMissingSecret(t *testing.T) {
	waiting := func(version, message string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "memcached", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: message}}}}
		return pod
	}
	if unchanged(waiting("1", `secret "x" not found`), waiting("2", `secret "y" not found`)) {
		t.Error("the status would still name the Secret that exists now")
	}
}

func TestStatusOnly_IsStatusOfStatefulSet(t *testing.T) {
	set := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Generation: 1, Labels: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hub"}, {Manager: "controller", Subresource: "status"}}}}
		if change != nil {
			s.ResourceVersion = "2"
			change(s)
		}
		return s
	}
	for _, c := range []struct {
		name   string
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		{"counts", func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }, true},
		{"counts and their manager", func(s *appsv1.StatefulSet) { s.ManagedFields[1].Time = &metav1.Time{} }, true},
		{"spec", func(s *appsv1.StatefulSet) { s.Generation = 2 }, false},
		{"labels", func(s *appsv1.StatefulSet) { s.Labels["a"] = "c" }, false},
		{"annotations", func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{"a": "c"} }, false},
		{"owner of a field, with equal values", func(s *appsv1.StatefulSet) { s.ManagedFields[0].Manager = "kubectl" }, false},
		{"another object", func(s *appsv1.StatefulSet) { s.UID = "another" }, false},
		{"deletion", func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		if got := statusOnly(set(nil), set(c.change)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
	service := &corev1.Service{}
	if statusOnly(service, service) {
		t.Error("a Service has no generation, so a change of its spec could be missed")
	}
}

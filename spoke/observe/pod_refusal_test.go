package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func event(reason, message string, after time.Duration) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(noon.Add(after))}
}

func refusedPod(n int, cause string) string {
	return fmt.Sprintf(`Create Pod sessions-%d in StatefulSet sessions failed error: pods "sessions-%d" is forbidden: %s`, n, n, cause)
}

const quota = "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"

func TestMissesPods_ComparesDesiredAndExistingPods(t *testing.T) {
	unobserved := statefulSet(3, counts(0, 0, 0, 0))
	unobserved.Generation++
	deleting := statefulSet(3, counts(0, 0, 0, 0))
	deleting.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, c := range map[string]struct {
		set  *appsv1.StatefulSet
		want bool
	}{
		"no StatefulSet":                           {nil, false},
		"no pod exists":                            {statefulSet(3, counts(0, 0, 0, 0)), true},
		"the next pod does not exist":              {statefulSet(3, counts(2, 2, 2, 2)), true},
		"the previous pod is not ready":            {statefulSet(3, counts(2, 1, 2, 1)), false},
		"all pods exist":                           {statefulSet(3, counts(3, 1, 3, 1)), false},
		"the controller has not observed the spec": {unobserved, false},
		"the StatefulSet is being deleted":         {deleting, false},
	} {
		if got := MissesPods(c.set); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPodRefusal_ReportsCauseInEvents(t *testing.T) {
	set := statefulSet(3, counts(0, 0, 0, 0))
	set.UID = "present"
	older := event(reasonFailedCreate, refusedPod(0, quota), time.Hour)
	older.InvolvedObject.UID = "another"
	series := event(reasonFailedCreate, refusedPod(0, quota), -time.Hour)
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(time.Minute))}
	for _, c := range []struct {
		name    string
		events  []corev1.Event
		message string
		hint    string
	}{
		{"a quota", []corev1.Event{event(reasonFailedCreate, refusedPod(0, quota), 0)}, "the member refuses the pods of StatefulSet/sessions: exceeded quota: small, requested: pods=1, limited: pods=2", "ResourceQuota"},
		{"Pod Security", []corev1.Event{event(reasonFailedCreate, refusedPod(0, `violates PodSecurity "restricted:latest": runAsNonRoot != true (pod sessions-0)`), 0)},
			`violates PodSecurity "restricted:latest": runAsNonRoot != true (pod sessions-N)`, "Pod Security level"},
		{"a LimitRange", []corev1.Event{event(reasonFailedCreate, refusedPod(0, "maximum memory usage per Container is 64Mi, but limit is 77Mi"), 0)}, "maximum memory", "LimitRange"},
		{"a priority class", []corev1.Event{event(reasonFailedCreate, refusedPod(0, "no PriorityClass with name high was found"), 0)}, "no PriorityClass", "priorityClassName"},
		{"a webhook", []corev1.Event{event(reasonFailedCreate, `Create Pod sessions-0 in StatefulSet sessions failed error: admission webhook "v.example" denied the request: no`, 0)},
			`the member refuses the pods of StatefulSet/sessions: admission webhook "v.example" denied the request: no`, "webhook"},
		{"an unknown cause", []corev1.Event{event(reasonFailedCreate, "create Pod sessions-0 in StatefulSet sessions failed error: strange", 0)}, "refuses the pods of StatefulSet/sessions: strange", "kubectl describe -n shop statefulset sessions"},
		{"a claim", []corev1.Event{event(reasonFailedCreate, `create Claim data-sessions-1 for Pod sessions-1 in StatefulSet sessions failed error: persistentvolumeclaims "data-sessions-1" is forbidden: `+quota, 0)}, "refuses the pods of StatefulSet/sessions: exceeded quota: small", "ResourceQuota"},
		{"a series", []corev1.Event{series, event(reasonSuccessfulCreate, "create Pod", 0)}, "exceeded quota", "ResourceQuota"},
		{"a success after the failure", []corev1.Event{event(reasonFailedCreate, refusedPod(0, quota), -time.Minute), event(reasonSuccessfulCreate, "create Pod sessions-0", 0)}, "", ""},
		{"a success before the failure", []corev1.Event{event(reasonFailedCreate, refusedPod(1, quota), time.Second), event(reasonSuccessfulCreate, "create Pod sessions-0", 0)}, "exceeded quota", "ResourceQuota"},
		{"a deleted StatefulSet of the same name", []corev1.Event{older}, "", ""},
		{"other events", []corev1.Event{event("FailedUpdate", "x", 0)}, "", ""},
		{"no events", nil, "", ""},
	} {
		got := PodRefusal(set, c.events)
		if (got.Reason == v1alpha1.ReasonPodsRefused) != (c.message != "") || !strings.Contains(got.Message, c.message) || !strings.Contains(got.Hint, c.hint) {
			t.Errorf("%s: %s %q (%s), want %q (%s)", c.name, got.Reason, got.Message, got.Hint, c.message, c.hint)
		}
	}
}

func TestPodRefusal_KeepsMessageForSameCause(t *testing.T) {
	// The pod tried last, the usage of the quota and the order of events must not cause a
	// write.
	set := statefulSet(9, counts(0, 0, 0, 0))
	var all []corev1.Event
	for n := range 9 {
		all = append(all, event(reasonFailedCreate, refusedPod(n, strings.Replace(quota, "used: pods=2", fmt.Sprint("used: pods=", n), 1)), 0))
	}
	want := PodRefusal(set, all[:1])
	for range all {
		all = append(all[1:], all[0])
		if diff := cmp.Diff(want, PodRefusal(set, slices.Clone(all))); diff != "" {
			t.Fatalf("order changes the outcome (-want +got):\n%s", diff)
		}
	}
}

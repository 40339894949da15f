package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// lacking is a member with a StatefulSet that lacks pods, and what its API server
// answers to a list of events.
type lacking struct {
	*member
	set    *appsv1.StatefulSet
	asked  int
	answer func(*corev1.EventList) error
}

func newLacking() *lacking {
	l := &lacking{set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions", Generation: 1},
		Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2))},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1}}}
	l.member = &member{name: "member-1", Controller: New(Options{Clock: clock.RealClock{}})}
	return l
}

// sees is the observation at a time, and after how long it is made again.
func (l *lacking) sees(t *testing.T, mc *v1alpha1.MemberCache, at time.Time) (observe.Observation, time.Duration) {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			l.asked++
			events, ok := list.(*corev1.EventList)
			if !ok {
				t.Fatalf("a list of %T", list)
			}
			return l.answer(events)
		},
	}).Build()
	s := &snapshot{now: at, cache: mc, engaged: &engagement{context: t.Context(), cluster: lagging{api: api}}}
	seen := observe.Observe(l.set, nil)
	return seen, l.explainLack(t.Context(), s, l.set, &seen)
}

func quotaIsFull(events *corev1.EventList) error {
	events.Items = []corev1.Event{{Reason: "FailedCreate", LastTimestamp: metav1.NewTime(noon),
		Message: `create Pod sessions-0 in StatefulSet sessions failed error: pods "sessions-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`}}
	return nil
}

func TestPodsThatLackAreAskedAboutAfterAWhileAndThenLessAndLess(t *testing.T) {
	l := newLacking()
	l.answer = quotaIsFull
	mc := memberCache()
	seen, look := l.sees(t, mc, noon)
	if l.asked != 0 || seen.State != v1alpha1.MemberProgressing || look != firstLook {
		t.Fatalf("at once: asked %d times, %s, again after %s", l.asked, seen.State, look)
	}
	_, look = l.sees(t, mc, noon.Add(time.Second))
	if l.asked != 0 || look != firstLook-time.Second {
		t.Fatalf("an event meanwhile: asked %d times, again after %s", l.asked, look)
	}
	at := noon
	for n := range 20 {
		at = at.Add(firstLook + look)
		seen, look = l.sees(t, mc, at)
		if seen.State != v1alpha1.MemberDegraded || seen.Outcome.Reason != v1alpha1.ReasonPodsRefused || seen.Outcome.Hint == "" {
			t.Fatalf("look %d: %s/%s %q", n, seen.State, seen.Outcome.Reason, seen.Outcome.Message)
		}
	}
	if look < 40*time.Second || look > 80*time.Second || l.asked != 20 {
		t.Errorf("asked %d times, and again after %s", l.asked, look)
	}
	// The quota was raised, and the pods are made.
	l.set.Status.Replicas = 2
	if seen, look = l.sees(t, mc, at); seen.State != v1alpha1.MemberProgressing || look != 0 {
		t.Errorf("%s, again after %s", seen.State, look)
	}
}

func TestARestartSaysTheSameOfPodsThatLackAsBefore(t *testing.T) {
	before := newLacking()
	before.answer = quotaIsFull
	mc := memberCache()
	before.sees(t, mc, noon)
	was, _ := before.sees(t, mc, noon.Add(firstLook))
	mc.Status.State, mc.Status.Outcome = was.State, was.Outcome

	for name, answer := range map[string]func(*corev1.EventList) error{
		"the same":          quotaIsFull,
		"nothing this time": func(*corev1.EventList) error { return errors.New("strange") },
	} {
		after := newLacking()
		after.answer = answer
		if is, _ := after.sees(t, mc, noon.Add(time.Hour)); is.Outcome != was.Outcome || is.State != was.State {
			t.Errorf("%s: %s %+v, was %s %+v", name, is.State, is.Outcome, was.State, was.Outcome)
		}
	}
}

// A member that was joined before the account had the right works as it did.
func TestAMemberThatDoesNotLetItsEventsBeReadSaysSoWhereItMatters(t *testing.T) {
	l := newLacking()
	l.answer = func(*corev1.EventList) error {
		return apierrors.NewForbidden(corev1.Resource("events"), "", errors.New(`User "hub" cannot list resource "events"`))
	}
	mc := memberCache()
	if seen, _ := l.sees(t, mc, noon); seen.Outcome.Hint != "" {
		t.Errorf("a hint at once: %s", seen.Outcome.Hint)
	}
	seen, _ := l.sees(t, mc, noon.Add(firstLook))
	if seen.State != v1alpha1.MemberProgressing || !strings.Contains(seen.Outcome.Hint, "reconcile-lab join member-1") {
		t.Errorf("%s (%s)", seen.State, seen.Outcome.Hint)
	}
	l.set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	if seen, _ = l.sees(t, mc, noon.Add(time.Minute)); seen.State != v1alpha1.MemberReady || seen.Outcome.Hint != "" {
		t.Errorf("%s (%s)", seen.State, seen.Outcome.Hint)
	}
}

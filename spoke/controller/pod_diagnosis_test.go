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
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// shortageTest is a member with a StatefulSet whose pods are missing, and the answer of its
// API server to a list of events.
type shortageTest struct {
	member *member
	state  *cacheState
	set    *appsv1.StatefulSet
	lists  int
	answer func(*corev1.EventList) error
}

func newShortageTest() *shortageTest {
	l := &shortageTest{state: &cacheState{}, set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions", Generation: 1},
		Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2))},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1}}}
	l.member = &member{name: "member-1", clock: clock.RealClock{}}
	return l
}

// observe returns the observation at a time, and the interval to the next one.
func (l *shortageTest) observe(t *testing.T, mc *v1alpha1.MemberCache, at time.Time) (observe.Observation, time.Duration) {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			l.lists++
			events, ok := list.(*corev1.EventList)
			if !ok {
				t.Fatalf("a list of %T", list)
			}
			return l.answer(events)
		},
	}).Build()
	s := &snapshot{now: at, cache: mc, state: l.state, engaged: &memberqueue.Engagement{Context: t.Context(), Cluster: staleCluster{api: api}}}
	seen := observe.Observe(l.set, nil)
	return seen, l.member.diagnose(t.Context(), s, l.set, &seen)
}

func quotaIsFull(events *corev1.EventList) error {
	events.Items = []corev1.Event{{Reason: "FailedCreate", LastTimestamp: metav1.NewTime(noon),
		Message: `create Pod sessions-0 in StatefulSet sessions failed error: pods "sessions-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`}}
	return nil
}

func TestDiagnose_ListsEventsWithGrowingInterval(t *testing.T) {
	l := newShortageTest()
	l.answer = quotaIsFull
	mc := memberCache()
	seen, wait := l.observe(t, mc, noon)
	if l.lists != 0 || seen.State != v1alpha1.MemberProgressing || wait != firstDiagnosis {
		t.Fatalf("at once: %d lists, %s, again after %s", l.lists, seen.State, wait)
	}
	_, wait = l.observe(t, mc, noon.Add(time.Second))
	if l.lists != 0 || wait != firstDiagnosis-time.Second {
		t.Fatalf("an event meanwhile: %d lists, again after %s", l.lists, wait)
	}
	at := noon
	for n := range 20 {
		at = at.Add(firstDiagnosis + wait)
		seen, wait = l.observe(t, mc, at)
		if seen.State != v1alpha1.MemberDegraded || seen.Outcome.Reason != v1alpha1.ReasonPodsRefused || seen.Outcome.Hint == "" {
			t.Fatalf("list %d: %s/%s %q", n, seen.State, seen.Outcome.Reason, seen.Outcome.Message)
		}
	}
	if wait < 40*time.Second || wait > 80*time.Second || l.lists != 20 {
		t.Errorf("%d lists, and again after %s", l.lists, wait)
	}
	// The quota was raised, and the pods are created.
	l.set.Status.Replicas = 2
	if seen, wait = l.observe(t, mc, at); seen.State != v1alpha1.MemberProgressing || wait != 0 {
		t.Errorf("%s, again after %s", seen.State, wait)
	}
}

func TestDiagnose_ContinuesAfterRestart(t *testing.T) {
	before := newShortageTest()
	before.answer = quotaIsFull
	mc := memberCache()
	before.observe(t, mc, noon)
	was, _ := before.observe(t, mc, noon.Add(firstDiagnosis))
	mc.Status.State, mc.Status.Outcome = was.State, was.Outcome

	for name, answer := range map[string]func(*corev1.EventList) error{
		"the same":              quotaIsFull,
		"an unexpected request": func(*corev1.EventList) error { return errors.New("unexpected") },
	} {
		after := newShortageTest()
		after.answer = answer
		if is, _ := after.observe(t, mc, noon.Add(time.Hour)); is.Outcome != was.Outcome || is.State != was.State {
			t.Errorf("%s: %s %+v, was %s %+v", name, is.State, is.Outcome, was.State, was.Outcome)
		}
	}
}

// A member whose account was created without the right still works.
func TestDiagnose_NamesMissingRightToListEvents(t *testing.T) {
	l := newShortageTest()
	l.answer = func(*corev1.EventList) error {
		return apierrors.NewForbidden(corev1.Resource("events"), "", errors.New(`User "hub" cannot list resource "events"`))
	}
	mc := memberCache()
	if seen, _ := l.observe(t, mc, noon); seen.Outcome.Hint != "" {
		t.Errorf("a hint at once: %s", seen.Outcome.Hint)
	}
	seen, _ := l.observe(t, mc, noon.Add(firstDiagnosis))
	if seen.State != v1alpha1.MemberProgressing || !strings.Contains(seen.Outcome.Hint, "reconcile-lab join member-1") {
		t.Errorf("%s (%s)", seen.State, seen.Outcome.Hint)
	}
	l.set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	if seen, _ = l.observe(t, mc, noon.Add(time.Minute)); seen.State != v1alpha1.MemberReady || seen.Outcome.Hint != "" {
		t.Errorf("%s (%s)", seen.State, seen.Outcome.Hint)
	}
}

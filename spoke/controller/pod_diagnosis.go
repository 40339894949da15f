package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// Why a StatefulSet's pods are not made stands in its events only. They are listed
// when pods lack for firstLook, and then less and less often while they do: a watch
// would cost each member a stream that is silent when all is well, and would keep a
// member away that was joined before the account had the right to it.
const firstLook = 3 * time.Second

var lookPace = pace{5 * time.Second, time.Minute}

// missing notes which StatefulSets of a member lack pods. Losing it costs one list
// for each that does.
type missing struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*lack
}

type lack struct {
	generation int64
	looks      int32
	due        time.Time
	why        v1alpha1.Outcome
}

func (m *missing) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, key)
}

// of gives what is known of a lack, from the saved status after a restart.
func (m *missing) of(key types.NamespacedName, mc *v1alpha1.MemberCache, now time.Time) lack {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.sets[key]; l != nil && l.generation == mc.Generation {
		return *l
	}
	if mc.Status.Reason == v1alpha1.ReasonPodsRefused && mc.Status.ObservedGeneration == mc.Generation {
		return lack{generation: mc.Generation, due: now, why: v1alpha1.Outcome{
			Reason: mc.Status.Reason, Message: mc.Status.Message, Hint: mc.Status.Hint}}
	}
	return lack{generation: mc.Generation, due: now.Add(firstLook)}
}

func (m *missing) note(key types.NamespacedName, l lack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[types.NamespacedName]*lack{}
	}
	m.sets[key] = &l
}

// explainLack puts into an observation why pods lack, and says after how long to
// look again, 0 if none do.
func (m *member) explainLack(ctx context.Context, s *snapshot, set *appsv1.StatefulSet, seen *observe.Observation) time.Duration {
	key := client.ObjectKeyFromObject(s.cache)
	if seen.Outcome.Reason != v1alpha1.ReasonPodsStarting || !observe.LacksPods(set) {
		m.missing.forget(key)
		return 0
	}
	l := m.missing.of(key, s.cache, s.now)
	if left := l.due.Sub(s.now); left <= 0 || left > lookPace.last*2 {
		l.looks++
		l.due = s.now.Add(jittered(lookPace.after(l.looks)))
		if why, known := m.whyLacking(ctx, s, set); known {
			l.why = why
		}
	}
	m.missing.note(key, l)
	switch l.why.Reason {
	case v1alpha1.ReasonPodsRefused:
		seen.State, seen.Outcome = v1alpha1.MemberDegraded, l.why
	default:
		seen.Outcome.Hint = l.why.Hint
	}
	return max(l.due.Sub(s.now), time.Millisecond)
}

// whyLacking asks the member. Where it cannot tell this time, what is known holds.
func (m *member) whyLacking(ctx context.Context, s *snapshot, set *appsv1.StatefulSet) (why v1alpha1.Outcome, known bool) {
	var events corev1.EventList
	err := s.engaged.cluster.GetAPIReader().List(ctx, &events, client.InNamespace(set.Namespace), client.MatchingFields{
		"involvedObject.kind": "StatefulSet", "involvedObject.name": set.Name})
	if err == nil {
		return observe.Refused(set, events.Items), true
	}
	if failure.Of(err, "list", "events").Reason == v1alpha1.ReasonForbidden {
		return v1alpha1.Outcome{Hint: fmt.Sprintf("pods are missing, and the hub's account in the member lacks the right to list events, which say why: "+
			"reconcile-lab join %s --kubeconfig FILE sets it", m.name)}, true
	}
	return v1alpha1.Outcome{}, false
}

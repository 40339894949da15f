package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/observe"
)

// Only a StatefulSet's events name the reason why its pods are not created. The events
// are listed once pods have been missing for firstDiagnosis, and then by
// diagnosisIntervals. A watch would cost each member a stream without news, and would
// disconnect a member whose account was created without the right to it.
const firstDiagnosis = 3 * time.Second

var diagnosisIntervals = intervals{5 * time.Second, time.Minute}

// podShortage is the diagnosis of a StatefulSet whose pods are missing; its zero value is
// no shortage.
type podShortage struct {
	generation int64
	lists      int32
	due        time.Time
	cause      v1alpha1.Outcome
}

// update starts the diagnosis of a generation, after a restart from the saved status.
func (p *podShortage) update(mc *v1alpha1.MemberCache, now time.Time) {
	if !p.due.IsZero() && p.generation == mc.Generation {
		return
	}
	*p = podShortage{generation: mc.Generation, due: now.Add(firstDiagnosis)}
	if mc.Status.Reason == v1alpha1.ReasonPodsRefused && mc.Status.ObservedGeneration == mc.Generation {
		p.due = now
		p.cause = v1alpha1.Outcome{Reason: mc.Status.Reason, Message: mc.Status.Message, Hint: mc.Status.Hint}
	}
}

// diagnose adds to an observation why pods are missing, and returns when to diagnose
// again, 0 if none are missing.
func (m *member) diagnose(ctx context.Context, s *snapshot, set *appsv1.StatefulSet, seen *observe.Observation) time.Duration {
	p := &s.state.shortage
	if seen.Outcome.Reason != v1alpha1.ReasonPodsStarting || !observe.MissesPods(set) {
		*p = podShortage{}
		return 0
	}
	p.update(s.cache, s.now)
	if remaining := p.due.Sub(s.now); remaining <= 0 || remaining > diagnosisIntervals.longest*2 {
		p.lists++
		p.due = s.now.Add(jittered(diagnosisIntervals.after(p.lists)))
		if cause, known := m.shortageCause(ctx, s, set); known {
			p.cause = cause
		}
	}
	switch p.cause.Reason {
	case v1alpha1.ReasonPodsRefused:
		seen.State, seen.Outcome = v1alpha1.MemberDegraded, p.cause
	default:
		seen.Outcome.Hint = p.cause.Hint
	}
	return max(p.due.Sub(s.now), time.Millisecond)
}

// shortageCause reads the StatefulSet's events. known is false where they cannot be read
// this time; the last cause then stays.
func (m *member) shortageCause(ctx context.Context, s *snapshot, set *appsv1.StatefulSet) (cause v1alpha1.Outcome, known bool) {
	var events corev1.EventList
	err := s.engaged.Cluster.GetAPIReader().List(ctx, &events, client.InNamespace(set.Namespace), client.MatchingFields{
		"involvedObject.kind": "StatefulSet", "involvedObject.name": set.Name})
	if err == nil {
		return observe.PodRefusal(set, events.Items), true
	}
	if failure.Of(err, "list", "events").Reason == v1alpha1.ReasonForbidden {
		return v1alpha1.Outcome{Hint: fmt.Sprintf("pods are missing, and the hub's account in the member lacks the right to list events, which name the cause: "+
			"reconcile-lab join %s --kubeconfig FILE grants it", m.name)}, true
	}
	return v1alpha1.Outcome{}, false
}

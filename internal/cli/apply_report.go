package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// appliedReport is the result of apply for one cache, as -o prints it.
type appliedReport struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Reconcile string                   `json:"reconcile"`
	Status    readiness                `json:"status"`
	Members   string                   `json:"members,omitempty"`
	Reason    string                   `json:"reason,omitempty"`
	Message   string                   `json:"message,omitempty"`
	Clusters  []v1alpha1.ClusterStatus `json:"clusters,omitempty"`
}

// reportApplied prints the result and returns the error that sets the exit code.
// waitErr is the error that ended the wait early.
func (a *app) reportApplied(caches []*appliedCache, waitErr error) error {
	for _, ac := range caches {
		ac.completeChange()
	}
	if a.structured() {
		if err := a.printValue(appliedReports(caches), false); err != nil {
			return err
		}
	} else {
		for _, line := range appliedLines(caches) {
			fmt.Fprintln(a.out, line)
		}
	}
	return applyError(caches, waitErr)
}

// completeChange adds to the change how many members reported it. It claims only
// what the reports contain: a member with an error may have a part of the change.
func (ac *appliedCache) completeChange() {
	if ac.change.verb == "" {
		return
	}
	if ac.latest == nil {
		ac.change.parts, ac.change.note = []string{"CacheCluster"}, "on the hub, then another client deleted it"
		return
	}
	if ac.readiness() == readinessReady {
		if ac.before != nil {
			ac.change.note = placementNote(ac.before, ac.latest)
		}
		return
	}
	if ac.before != nil && ac.before.Generation == ac.generation {
		// Labels and annotations stay on the hub.
		return
	}
	p := propagationOf(ac.latest, ac.generation)
	switch {
	case p.complete == p.members && p.members > 0:
		return
	case p.complete > 0:
		ac.change.note = fmt.Sprintf("(fully applied in %d of %s)", p.complete, plural(p.members, "member"))
		return
	}
	ac.change.parts = []string{"CacheCluster"}
	switch {
	case ac.latest.Status.ObservedGeneration < ac.generation:
		ac.change.note = "on the hub, no report from any member yet"
	case p.absent == p.members:
		ac.change.note = "on the hub, not applied in any member"
	default:
		ac.change.note = "on the hub, not yet fully applied in any member"
	}
}

func appliedReports(caches []*appliedCache) []appliedReport {
	reports := make([]appliedReport, 0, len(caches))
	for _, ac := range caches {
		namespace, name, _ := strings.Cut(ac.name, "/")
		r := appliedReport{Namespace: namespace, Name: name, Reconcile: ac.change.String(), Status: ac.readiness()}
		if ac.latest != nil {
			c := readyCondition(ac.latest)
			r.Members, r.Reason, r.Message, r.Clusters = ac.latest.Status.Members, c.Reason, c.Message, ac.latest.Status.Clusters
		}
		reports = append(reports, r)
	}
	return reports
}

// appliedLines returns the text of the result. The last two lines are the summary:
// what changed, and the status. Before them are the problems, and one line per cache
// if there are several.
func appliedLines(caches []*appliedCache) []string {
	var lines []string
	for _, ac := range caches {
		if ac.readiness() != readinessReady {
			lines = append(lines, ac.problemLines()...)
		}
	}
	if len(caches) > 1 {
		for _, ac := range caches {
			state := "deleted"
			if ac.latest != nil {
				state = summary(ac.latest)
			}
			lines = append(lines, fmt.Sprintf("%s: %s, %s", ac.name, ac.change, state))
		}
	}
	return append(lines, "reconcile: "+summarizeChanges(caches), "status: "+transition(caches))
}

// problemLines returns why a cache is not ready, member by member.
func (ac *appliedCache) problemLines() []string {
	if ac.latest == nil {
		return []string{ac.name + ": deleted by another client"}
	}
	if ac.latest.Status.ObservedGeneration < ac.generation {
		return []string{ac.name + ": the hub manager has not observed this change; check that it runs and renews its lease: kubectl get lease -n reconcile-lab-system hub.cache.reconcile-lab.io -o yaml"}
	}
	c := readyCondition(ac.latest)
	lines := []string{fmt.Sprintf("%s: %s: %s", ac.name, c.Reason, oneLine(c.Message))}
	for i := range ac.latest.Status.Clusters {
		m := &ac.latest.Status.Clusters[i]
		if m.State == v1alpha1.MemberReady {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s %d/%d %s", m.Name, m.State, m.ReadyReplicas, m.Replicas, m.Reason)))
		lines = append(lines, memberDetails(m, time.Now())...)
	}
	return lines
}

// summarizeChanges returns the change if it is the same for all caches, else the
// number of caches per verb.
func summarizeChanges(caches []*appliedCache) string {
	same := true
	count := map[string]int{}
	for _, ac := range caches {
		same = same && ac.change.String() == caches[0].change.String()
		count[ac.change.verb]++
	}
	if same {
		return caches[0].change.String()
	}
	var parts []string
	for _, v := range []struct{ verb, word string }{{"created", "created"}, {"updated", "updated"}, {"", "unchanged"}} {
		if n := count[v.verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", v.word, plural(n, "cache")))
		}
	}
	return strings.Join(parts, ", ")
}

// transition returns the state just after the apply, and the present one.
func transition(caches []*appliedCache) string {
	wasReady, isReady := true, true
	for _, ac := range caches {
		wasReady = wasReady && ac.before != nil && ac.before.Generation == ac.generation && readinessOf(ac.before, ac.generation) == readinessReady
		isReady = isReady && ac.readiness() == readinessReady
	}
	switch {
	case wasReady && isReady:
		return "ready"
	case isReady:
		return "progressing -> ready"
	}
	return "progressing -> not ready"
}

// applyError returns nil if all caches are ready.
func applyError(caches []*appliedCache, waitErr error) error {
	var progressing, stalled []string
	for _, ac := range caches {
		switch ac.readiness() {
		case readinessStalled:
			stalled = append(stalled, ac.name)
		case readinessProgressing:
			progressing = append(progressing, ac.name)
		}
	}
	switch {
	case errors.Is(waitErr, context.Canceled):
		return waitErr
	case len(stalled) > 0:
		return withCode(exitFailed, fmt.Errorf("failed: %s: blocked until someone acts; see the messages above", strings.Join(stalled, ", ")))
	case len(progressing) > 0:
		return withCode(exitNotReady, fmt.Errorf("not ready in time: %s: may still become ready; follow it with `reconcile-lab observe`", strings.Join(progressing, ", ")))
	}
	return waitErr
}

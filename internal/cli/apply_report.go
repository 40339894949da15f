package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// await watches until every object is ready or stalled, showing progress. It
// returns the context's error where that comes first.
func (a *app) await(ctx context.Context, h *hub, all []*applied) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	byName := map[string]*applied{}
	namespace := all[0].now.Namespace
	for _, ap := range all {
		byName[ap.name] = ap
		if ap.now.Namespace != namespace {
			namespace = ""
		}
	}
	progress := a.out
	if a.structured() {
		progress = a.err
	}
	b := newBoard(progress)
	defer b.clear()
	sightings, lost, err := h.watch(ctx, namespace)
	if err != nil {
		return err
	}
	for {
		b.update(progressLines(all))
		if settled(all) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			b.clear()
			a.note("connection to the hub lost, trying again: %v", err)
		case s := <-sightings:
			ap := byName[s.cache.Namespace+"/"+s.cache.Name]
			switch {
			case ap == nil || ap.now == nil || ap.now.UID != s.cache.UID:
			case s.deleted:
				ap.now = nil
			default:
				ap.now = s.cache
			}
		}
	}
}

func settled(all []*applied) bool {
	for _, ap := range all {
		if ap.verdict() == verdictProgressing {
			return false
		}
	}
	return true
}

// progressLines is a line for each member of each object.
func progressLines(all []*applied) []boardLine {
	var lines []boardLine
	for _, ap := range all {
		prefix := ""
		if len(all) > 1 {
			prefix = ap.name + " "
		}
		add := func(key, text string) {
			lines = append(lines, boardLine{ap.name + "/" + key, prefix + text})
		}
		switch {
		case ap.now == nil:
			add("", "deleted by somebody else")
		case ap.now.Status.ObservedGeneration < ap.generation:
			// What the status says of members is about an older spec.
			if len(all) == 1 {
				prefix = ap.name + " "
			}
			add("", "waits for the hub manager")
		default:
			for i := range ap.now.Status.Clusters {
				m := &ap.now.Status.Clusters[i]
				add(m.Name, memberLine(m))
			}
		}
	}
	return lines
}

// appliedReport is the result of apply for programs.
type appliedReport struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Reconcile string                   `json:"reconcile"`
	Status    verdict                  `json:"status"`
	Members   string                   `json:"members,omitempty"`
	Reason    string                   `json:"reason,omitempty"`
	Message   string                   `json:"message,omitempty"`
	Clusters  []v1alpha1.ClusterStatus `json:"clusters,omitempty"`
}

// reportApplied prints the outcome and turns it into the exit code. waitErr is
// what ended the waiting early.
func (a *app) reportApplied(all []*applied, waitErr error) error {
	for _, ap := range all {
		ap.describe()
	}
	if a.structured() {
		if err := a.printValue(appliedReports(all), false); err != nil {
			return err
		}
	} else {
		for _, line := range appliedLines(all) {
			fmt.Fprintln(a.out, line)
		}
	}
	return applyError(all, waitErr)
}

// describe completes what was changed by what was seen since. It claims of members
// only what their reports hold: where one is in trouble, a part may be written.
func (ap *applied) describe() {
	if ap.change.verb == "" {
		return
	}
	if ap.now == nil {
		ap.change.what, ap.change.note = []string{"CacheCluster"}, "on the hub, then somebody else deleted it"
		return
	}
	if ap.verdict() == verdictReady {
		if ap.before != nil {
			ap.change.note = moved(ap.before, ap.now)
		}
		return
	}
	if ap.before != nil && ap.before.Generation == ap.generation {
		// Labels and annotations stay on the hub.
		return
	}
	r := reached(ap.now, ap.generation)
	switch {
	case r.full == r.members && r.members > 0:
	case r.full > 0:
		ap.change.note = fmt.Sprintf("(seen in full in %d of %s)", r.full, plural(r.members, "member"))
	case ap.now.Status.ObservedGeneration < ap.generation:
		ap.change.what, ap.change.note = []string{"CacheCluster"}, "on the hub, nothing seen in any member yet"
	case r.none == r.members:
		ap.change.what, ap.change.note = []string{"CacheCluster"}, "on the hub, nothing in any member"
	default:
		ap.change.what, ap.change.note = []string{"CacheCluster"}, "on the hub, not seen in full in any member yet"
	}
}

func appliedReports(all []*applied) []appliedReport {
	reports := make([]appliedReport, 0, len(all))
	for _, ap := range all {
		namespace, name, _ := strings.Cut(ap.name, "/")
		r := appliedReport{Namespace: namespace, Name: name, Reconcile: ap.change.String(), Status: ap.verdict()}
		if ap.now != nil {
			c := readyCondition(ap.now)
			r.Members, r.Reason, r.Message, r.Clusters = ap.now.Status.Members, c.Reason, c.Message, ap.now.Status.Clusters
		}
		reports = append(reports, r)
	}
	return reports
}

// appliedLines end with one line of what was done and one of what came of it;
// before them stands what needs somebody, and each object if there are several.
func appliedLines(all []*applied) []string {
	var lines []string
	for _, ap := range all {
		if ap.verdict() != verdictReady {
			lines = append(lines, ap.complaint()...)
		}
	}
	if len(all) > 1 {
		for _, ap := range all {
			state := "deleted"
			if ap.now != nil {
				state = summary(ap.now)
			}
			lines = append(lines, fmt.Sprintf("%s: %s, %s", ap.name, ap.change, state))
		}
	}
	return append(lines, "reconcile: "+changes(all), "status: "+transition(all))
}

// complaint says why an object is not ready, member by member.
func (ap *applied) complaint() []string {
	if ap.now == nil {
		return []string{ap.name + ": somebody else deleted it"}
	}
	c := readyCondition(ap.now)
	lines := []string{fmt.Sprintf("%s: %s: %s", ap.name, c.Reason, oneLine(c.Message))}
	if ap.now.Status.ObservedGeneration < ap.generation {
		lines[0] = ap.name + ": the hub manager has not looked at this change: is it running? It renews a lease then: kubectl get lease -n reconcile-lab-system hub.cache.reconcile-lab.io -o yaml"
		return lines
	}
	for i := range ap.now.Status.Clusters {
		m := &ap.now.Status.Clusters[i]
		if m.State == v1alpha1.MemberReady {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s %d/%d %s", m.Name, m.State, m.ReadyReplicas, m.Replicas, m.Reason)))
		lines = append(lines, explainMember(m, time.Now())...)
	}
	return lines
}

// changes is the same sentence for all objects, or a count of each kind.
func changes(all []*applied) string {
	same := true
	count := map[string]int{}
	for _, ap := range all {
		same = same && ap.change.String() == all[0].change.String()
		count[ap.change.verb]++
	}
	if same {
		return all[0].change.String()
	}
	var parts []string
	for _, v := range []struct{ verb, word string }{{"created", "created"}, {"updated", "updated"}, {"", "unchanged"}} {
		if n := count[v.verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", v.word, plural(n, "cache")))
		}
	}
	return strings.Join(parts, ", ")
}

// transition is from the state just after the apply to the present one.
func transition(all []*applied) string {
	was := true
	is := true
	for _, ap := range all {
		was = was && ap.before != nil && ap.before.Generation == ap.generation && judge(ap.before, ap.generation) == verdictReady
		is = is && ap.verdict() == verdictReady
	}
	switch {
	case was && is:
		return "ready"
	case is:
		return "progressing -> ready"
	}
	return "progressing -> not ready"
}

// applyError is nil if all are ready.
func applyError(all []*applied, waitErr error) error {
	var waiting, failed []string
	for _, ap := range all {
		switch ap.verdict() {
		case verdictStalled:
			failed = append(failed, ap.name)
		case verdictProgressing:
			waiting = append(waiting, ap.name)
		}
	}
	switch {
	case errors.Is(waitErr, context.Canceled):
		return waitErr
	case len(failed) > 0:
		return withCode(exitFailed, fmt.Errorf("failed: %s cannot become ready before somebody acts", strings.Join(failed, ", ")))
	case len(waiting) > 0:
		return withCode(exitNotReady, fmt.Errorf("not ready in time: %s; it may still become ready: reconcile-lab observe", strings.Join(waiting, ", ")))
	}
	return waitErr
}

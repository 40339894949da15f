package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// event is one change of a cache, as observe prints it.
type event struct {
	Type      string          `json:"type"` // Cache, Member, Drift, OpenDrift or Deleted
	Namespace string          `json:"namespace"`
	Cache     string          `json:"cache"`
	Member    string          `json:"member,omitempty"`
	State     string          `json:"state,omitempty"`
	Revision  string          `json:"revision,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Message   string          `json:"message,omitempty"`
	Hint      string          `json:"hint,omitempty"`
	Drift     *v1alpha1.Drift `json:"drift,omitempty"`
	// OpenDrift is a remaining drift.
	OpenDrift *v1alpha1.DriftFinding `json:"openDrift,omitempty"`
	// Missed is the number of earlier drifts that were not observed one by one.
	Missed int64 `json:"missed,omitempty"`

	line string
}

// tracker turns successive versions of CacheClusters into events. It reports a
// drift once, however often the object is updated, and counts a drift that a later
// one replaced before it was observed.
type tracker struct {
	// now and withNamespace only affect the text.
	now           func() time.Time
	withNamespace bool

	caches map[types.NamespacedName]*reportedState
}

// reportedState is the last reported state of a CacheCluster.
type reportedState struct {
	uid        types.UID
	summary    string
	members    map[string]string
	lastDrifts map[string]v1alpha1.Drift
	openDrifts map[string][]v1alpha1.DriftFinding
}

func newTracker(now func() time.Time, withNamespace bool) *tracker {
	return &tracker{now: now, withNamespace: withNamespace, caches: map[types.NamespacedName]*reportedState{}}
}

// update returns the events since the last version of cc: the cache, its members,
// corrected drifts, remaining drifts. For the first version of a CacheCluster these
// are its present state and the last drift of each member.
func (t *tracker) update(cc *v1alpha1.CacheCluster) []event {
	key := types.NamespacedName{Namespace: cc.Namespace, Name: cc.Name}
	last := t.caches[key]
	first := last == nil || last.uid != cc.UID
	if first {
		last = &reportedState{uid: cc.UID, members: map[string]string{}, lastDrifts: map[string]v1alpha1.Drift{}, openDrifts: map[string][]v1alpha1.DriftFinding{}}
		t.caches[key] = last
	}
	events := t.updateSummary(cc, last)
	events = append(events, t.updateMembers(cc, last)...)
	events = append(events, t.updateCorrectedDrifts(cc, last, first)...)
	return append(events, t.updateRemainingDrifts(cc, last)...)
}

// remove forgets a deleted cc.
func (t *tracker) remove(cc *v1alpha1.CacheCluster) []event {
	delete(t.caches, types.NamespacedName{Namespace: cc.Namespace, Name: cc.Name})
	e := event{Type: "Deleted", Namespace: cc.Namespace, Cache: cc.Name}
	e.line = t.name(cc) + ": deleted"
	return []event{e}
}

func (t *tracker) updateSummary(cc *v1alpha1.CacheCluster, last *reportedState) []event {
	s := summary(cc)
	if s == last.summary {
		return nil
	}
	last.summary = s
	c := readyCondition(cc)
	e := event{Type: "Cache", Namespace: cc.Namespace, Cache: cc.Name, State: s, Revision: cc.Status.Revision, Reason: c.Reason, Message: c.Message}
	e.line = fmt.Sprintf("%s: %s", t.name(cc), s)
	return []event{e}
}

func (t *tracker) updateMembers(cc *v1alpha1.CacheCluster, last *reportedState) []event {
	var events []event
	present := map[string]bool{}
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		present[m.Name] = true
		if line := memberLine(m); line != last.members[m.Name] {
			last.members[m.Name] = line
			events = append(events, t.memberEvent(cc, m, line))
		}
	}
	for name := range last.members {
		if !present[name] {
			delete(last.members, name)
			e := event{Type: "Member", Namespace: cc.Namespace, Cache: cc.Name, Member: name, State: "Removed"}
			e.line = fmt.Sprintf("%s %s: Removed", t.name(cc), name)
			events = append(events, e)
		}
	}
	return events
}

func (t *tracker) updateCorrectedDrifts(cc *v1alpha1.CacheCluster, last *reportedState, first bool) []event {
	var events []event
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.LastDrift == nil {
			continue
		}
		before, known := last.lastDrifts[m.Name]
		if known && before.Count == m.LastDrift.Count && before.At.Equal(&m.LastDrift.At) {
			continue
		}
		last.lastDrifts[m.Name] = *m.LastDrift
		missed := int64(0)
		switch {
		case m.LastDrift.Count < before.Count:
			// The count restarted: the cache left the member and was placed there again.
			missed = m.LastDrift.Count - 1
		case !first:
			missed = m.LastDrift.Count - before.Count - 1
		}
		events = append(events, t.driftEvent(cc, m, max(missed, 0)))
	}
	return events
}

func (t *tracker) updateRemainingDrifts(cc *v1alpha1.CacheCluster, last *reportedState) []event {
	var events []event
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		for j := range m.OpenDrifts {
			f := &m.OpenDrifts[j]
			isReported := func(reported v1alpha1.DriftFinding) bool { return equality.Semantic.DeepEqual(&reported, f) }
			if !slices.ContainsFunc(last.openDrifts[m.Name], isReported) {
				e := event{Type: "OpenDrift", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name, OpenDrift: f}
				e.line = remainingDriftLine(m.Name, t.object(cc, f.Object), f, t.now())
				events = append(events, e)
			}
		}
		last.openDrifts[m.Name] = m.OpenDrifts
	}
	return events
}

func (t *tracker) memberEvent(cc *v1alpha1.CacheCluster, m *v1alpha1.ClusterStatus, line string) event {
	e := event{
		Type: "Member", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name,
		State: string(m.State), Revision: m.Revision, Reason: m.Reason, Message: m.Message, Hint: m.Hint,
	}
	e.line = t.name(cc) + " " + line
	if hasProblem(m) && m.Hint != "" {
		e.line += "\n  hint: " + oneLine(m.Hint)
	}
	return e
}

func (t *tracker) driftEvent(cc *v1alpha1.CacheCluster, m *v1alpha1.ClusterStatus, missed int64) event {
	e := event{Type: "Drift", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name, Drift: m.LastDrift, Missed: missed}
	e.line = correctedDriftLine(m.Name, t.object(cc, m.LastDrift.Object), m.LastDrift, t.now())
	if missed > 0 {
		e.line += fmt.Sprintf(" (+%d more)", missed)
	}
	return e
}

func (t *tracker) name(cc *v1alpha1.CacheCluster) string {
	if t.withNamespace {
		return cc.Namespace + "/" + cc.Name
	}
	return cc.Name
}

func (t *tracker) object(cc *v1alpha1.CacheCluster, object string) string {
	if t.withNamespace {
		return object + " -n " + cc.Namespace
	}
	return object
}

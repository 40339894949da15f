package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// happening is one thing that observe prints.
type happening struct {
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
	// OpenDrift differs and is not put right.
	OpenDrift *v1alpha1.DriftFinding `json:"openDrift,omitempty"`
	// Missed counts the drifts before this one that were not seen one by one.
	Missed int64 `json:"missed,omitempty"`

	line string
}

// tracker turns successive sights of CacheClusters into what happened between
// them. A drift is told once, however often the object is seen, and one that is
// overwritten before it is seen is counted.
type tracker struct {
	// now and withNamespace only affect wording.
	now           func() time.Time
	withNamespace bool

	caches map[types.NamespacedName]*seen
}

// seen is what was told of a CacheCluster.
type seen struct {
	uid     types.UID
	summary string
	members map[string]string
	drifts  map[string]v1alpha1.Drift
	open    map[string][]v1alpha1.DriftFinding
}

func newTracker(now func() time.Time, withNamespace bool) *tracker {
	return &tracker{now: now, withNamespace: withNamespace, caches: map[types.NamespacedName]*seen{}}
}

// see returns what is new about cc, in the order in which it is to be told. At
// the first sight of a CacheCluster that is its present state, with the latest
// drift of each member.
func (t *tracker) see(cc *v1alpha1.CacheCluster) []happening {
	key := types.NamespacedName{Namespace: cc.Namespace, Name: cc.Name}
	was := t.caches[key]
	first := was == nil || was.uid != cc.UID
	if first {
		was = &seen{uid: cc.UID, members: map[string]string{}, drifts: map[string]v1alpha1.Drift{}, open: map[string][]v1alpha1.DriftFinding{}}
		t.caches[key] = was
	}
	var told []happening
	if s := summary(cc); s != was.summary {
		was.summary = s
		c := readyCondition(cc)
		h := happening{Type: "Cache", Namespace: cc.Namespace, Cache: cc.Name, State: s, Revision: cc.Status.Revision, Reason: c.Reason, Message: c.Message}
		h.line = fmt.Sprintf("%s: %s", t.name(cc), s)
		told = append(told, h)
	}
	present := map[string]bool{}
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		present[m.Name] = true
		if line := memberLine(m); line != was.members[m.Name] {
			was.members[m.Name] = line
			told = append(told, t.member(cc, m, line))
		}
	}
	for name := range was.members {
		if !present[name] {
			delete(was.members, name)
			h := happening{Type: "Member", Namespace: cc.Namespace, Cache: cc.Name, Member: name, State: "Removed"}
			h.line = fmt.Sprintf("%s %s: Removed", t.name(cc), name)
			told = append(told, h)
		}
	}
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.LastDrift == nil {
			continue
		}
		before, known := was.drifts[m.Name]
		if known && before.Count == m.LastDrift.Count && before.At.Equal(&m.LastDrift.At) {
			continue
		}
		was.drifts[m.Name] = *m.LastDrift
		missed := int64(0)
		switch {
		case m.LastDrift.Count < before.Count:
			// The count began anew: the member was left and joined again.
			missed = m.LastDrift.Count - 1
		case !first:
			missed = m.LastDrift.Count - before.Count - 1
		}
		told = append(told, t.drift(cc, m, max(missed, 0)))
	}
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		for j := range m.OpenDrifts {
			f := &m.OpenDrifts[j]
			if !slices.ContainsFunc(was.open[m.Name], func(known v1alpha1.DriftFinding) bool { return equality.Semantic.DeepEqual(&known, f) }) {
				told = append(told, t.openDrift(cc, m, f))
			}
		}
		was.open[m.Name] = m.OpenDrifts
	}
	return told
}

// gone tells that cc was deleted.
func (t *tracker) gone(cc *v1alpha1.CacheCluster) []happening {
	delete(t.caches, types.NamespacedName{Namespace: cc.Namespace, Name: cc.Name})
	h := happening{Type: "Deleted", Namespace: cc.Namespace, Cache: cc.Name}
	h.line = t.name(cc) + ": deleted"
	return []happening{h}
}

func (t *tracker) member(cc *v1alpha1.CacheCluster, m *v1alpha1.ClusterStatus, line string) happening {
	h := happening{
		Type: "Member", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name,
		State: string(m.State), Revision: m.Revision, Reason: m.Reason, Message: m.Message, Hint: m.Hint,
	}
	h.line = t.name(cc) + " " + line
	if needsAttention(m) && m.Hint != "" {
		h.line += "\n  hint: " + oneLine(m.Hint)
	}
	return h
}

func (t *tracker) drift(cc *v1alpha1.CacheCluster, m *v1alpha1.ClusterStatus, missed int64) happening {
	h := happening{Type: "Drift", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name, Drift: m.LastDrift, Missed: missed}
	object := m.LastDrift.Object
	if t.withNamespace {
		object += " -n " + cc.Namespace
	}
	h.line = driftLine(m.Name, object, m.LastDrift, t.now())
	if missed > 0 {
		h.line += fmt.Sprintf(" (+%d more)", missed)
	}
	return h
}

func (t *tracker) openDrift(cc *v1alpha1.CacheCluster, m *v1alpha1.ClusterStatus, f *v1alpha1.DriftFinding) happening {
	h := happening{Type: "OpenDrift", Namespace: cc.Namespace, Cache: cc.Name, Member: m.Name, OpenDrift: f}
	object := f.Object
	if t.withNamespace {
		object += " -n " + cc.Namespace
	}
	h.line = openDriftLine(m.Name, object, f, t.now())
	return h
}

// driftLine begins with words that scripts look for; they do not change.
func driftLine(member, object string, d *v1alpha1.Drift, now time.Time) string {
	fields := ""
	if !d.Deleted {
		fields = " " + driftFields(&d.DriftFinding)
	}
	when := "; put right at " + clock(d.At.Time, now)
	if d.ChangedAt != nil {
		when = " at " + clock(d.ChangedAt.Time, now)
	}
	return fmt.Sprintf("drift detected and corrected in %s  %s %s%s (%s%s)", repairTime(d.RepairedIn.Duration), member, object, fields, driftDone(&d.DriftFinding), when)
}

// repairTime in whole milliseconds, or less exactly where they are many or few.
func repairTime(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	}
	return d.Round(time.Second).String()
}

// clock is the time of day, with the date where it is not today's.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func (t *tracker) name(cc *v1alpha1.CacheCluster) string {
	if t.withNamespace {
		return cc.Namespace + "/" + cc.Name
	}
	return cc.Name
}

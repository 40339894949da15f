package controller

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// StateView is a cacheState as JSON. It contains no values of the spec, and nothing of a
// Secret.
type StateView struct {
	Member    string `json:"member"`
	Namespace string `json:"namespace"`
	// Name of the CacheCluster.
	Name string `json:"name"`

	QueuedSince *time.Time `json:"queuedSince,omitempty"`
	FirstEvent  *time.Time `json:"firstEvent,omitempty"`
	ReportDue   *time.Time `json:"reportDue,omitempty"`
	StartedAt   *time.Time `json:"startedAt,omitempty"`

	// Reconciling reports that a worker reconciles the MemberCache now. The fields below are
	// then left out, since the worker may change them.
	Reconciling bool `json:"reconciling,omitempty"`

	UID                   types.UID                 `json:"uid,omitempty"`
	Generation            int64                     `json:"generation,omitempty"`
	Backoff               *BackoffView              `json:"backoff,omitempty"`
	Conflicts             []ConflictView            `json:"conflicts,omitempty"`
	PodShortage           *PodShortageView          `json:"podShortage,omitempty"`
	CacheLagSince         *time.Time                `json:"cacheLagSince,omitempty"`
	UnsettledSince        *time.Time                `json:"unsettledSince,omitempty"`
	UnreportedCorrections []string                  `json:"unreportedCorrections,omitempty"`
	DeferredInventory     []v1alpha1.InventoryEntry `json:"deferredInventory,omitempty"`
}

// BackoffView is the current failure and its next retry.
type BackoffView struct {
	Class   v1alpha1.ErrorClass `json:"class"`
	Reason  string              `json:"reason"`
	Attempt int32               `json:"attempt"`
	Since   *time.Time          `json:"since,omitempty"`
	Due     *time.Time          `json:"due,omitempty"`
	// RetryAfter reports that the server named the time.
	RetryAfter bool `json:"retryAfter,omitempty"`
}

// ConflictView is a child that was corrected lately.
type ConflictView struct {
	Child     string     `json:"child"`
	Corrected *time.Time `json:"corrected,omitempty"`
	// Throttled reports that the child is in a conflict, and NextCorrection is when it is
	// corrected next.
	Throttled      bool       `json:"throttled,omitempty"`
	Corrections    int        `json:"corrections,omitempty"`
	NextCorrection *time.Time `json:"nextCorrection,omitempty"`
	InSync         bool       `json:"inSync"`
}

// PodShortageView is the diagnosis of missing pods.
type PodShortageView struct {
	EventLists int32      `json:"eventLists"`
	Due        *time.Time `json:"due,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// StateHandler serves the records of MemberCaches as a JSON array, sorted by member,
// namespace and name. The query parameters member, namespace and name (of the CacheCluster)
// select some of them. It never waits for a reconcile.
func (c *Controller) StateHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "method not allowed, use GET", http.StatusMethodNotAllowed)
			return
		}
		views := []StateView{}
		c.queues.Each(func(_ string, m memberqueue.Member) {
			if own, ok := m.(*member); ok {
				views = append(views, own.views(r.URL.Query())...)
			}
		})
		slices.SortFunc(views, func(a, b StateView) int {
			return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(views)
	})
}

// views returns the records that a query selects.
func (m *member) views(query url.Values) []StateView {
	if !selects(query, "member", m.name) {
		return nil
	}
	m.states.mu.Lock()
	defer m.states.mu.Unlock()
	var views []StateView
	for key, state := range m.states.byKey {
		name := cacheName(key.Name, m.name)
		if selects(query, "namespace", key.Namespace) && selects(query, "name", name) {
			view := state.view()
			view.Member, view.Namespace, view.Name = m.name, key.Namespace, name
			views = append(views, view)
		}
	}
	return views
}

func selects(query url.Values, parameter, value string) bool {
	want := query.Get(parameter)
	return want == "" || want == value
}

// cacheName returns the CacheCluster's name in a MemberCache's name.
func cacheName(memberCache, member string) string {
	if n := len(memberCache) - len(member) - 1; n > 0 && memberCache[n:] == "."+member {
		return memberCache[:n]
	}
	return memberCache
}

// view returns the record; the caller holds the lock of states.
func (state *cacheState) view() StateView {
	e := &state.events
	v := StateView{QueuedSince: optional(e.queuedSince), FirstEvent: optional(e.firstEvent),
		ReportDue: optional(e.reportDue), StartedAt: optional(e.startedAt)}
	if !state.mu.TryLock() {
		v.Reconciling = true
		return v
	}
	defer state.mu.Unlock()
	v.UID, v.Generation = state.uid, state.intent.generation
	v.CacheLagSince, v.UnsettledSince = optional(state.lag.since), optional(state.unsettledSince)
	v.DeferredInventory = state.deferredInventory
	if b := &state.backoff; b.failed() {
		v.Backoff = &BackoffView{Class: b.class, Reason: b.reason, Attempt: b.count, Since: optional(b.since), Due: optional(b.due), RetryAfter: b.retryAfter}
	}
	for child, conflict := range state.conflicts {
		v.Conflicts = append(v.Conflicts, ConflictView{Child: child.String(), Corrected: optional(conflict.corrected), Throttled: conflict.tripped(),
			Corrections: conflict.count, NextCorrection: optional(conflict.due), InSync: conflict.inSync})
	}
	slices.SortFunc(v.Conflicts, func(a, b ConflictView) int { return cmp.Compare(a.Child, b.Child) })
	if p := &state.shortage; !p.due.IsZero() {
		v.PodShortage = &PodShortageView{EventLists: p.lists, Due: optional(p.due), Reason: p.cause.Reason, Message: p.cause.Message}
	}
	for i := range state.unreported {
		v.UnreportedCorrections = append(v.UnreportedCorrections, state.unreported[i].Key.String())
	}
	return v
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

package controller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

func TestViews_SelectRecords(t *testing.T) {
	m := &member{name: "a"}
	for _, key := range []types.NamespacedName{{Namespace: "shop", Name: "sessions.a"}, {Namespace: "shop", Name: "carts.a"}, {Namespace: "blog", Name: "sessions.a"}} {
		m.states.get(key)
	}
	for query, want := range map[string]int{"": 3, "?namespace=shop": 2, "?name=sessions": 2, "?namespace=shop&name=sessions&member=a": 1, "?member=b": 0, "?name=sessions.a": 0} {
		if got := len(m.views(httptest.NewRequest(http.MethodGet, "/debug/caches"+query, nil).URL.Query())); got != want {
			t.Errorf("%q selects %d records, want %d", query, got, want)
		}
	}
}

func TestView_ShowsRecord(t *testing.T) {
	var s states
	s.record(sessionsKey, memberqueue.ChildChanged, noon)
	state := s.get(sessionsKey)
	state.identify("1")
	state.backoff = backoff{class: v1alpha1.ClassBlocked, reason: "Forbidden", attempt: attempt{count: 3}, due: noon.Add(time.Minute)}
	state.conflicts = conflictBreaker{{Kind: children.ServiceKind, Name: "sessions"}: {count: 5, corrected: noon}}
	state.shortage = podShortage{due: noon, lists: 2, cause: v1alpha1.Outcome{Reason: "PodsRefused"}}
	state.lag.since = noon
	state.unreported = []apply.Change{{Key: apply.Key{Kind: children.ServiceKind, Name: "sessions"}}}
	at := noon
	due := noon.Add(time.Minute)
	want := StateView{QueuedSince: &at, FirstEvent: &at, UID: "1", CacheLagSince: &at, UnreportedCorrections: []string{"Service/sessions"},
		Backoff:     &BackoffView{Class: v1alpha1.ClassBlocked, Reason: "Forbidden", Attempt: 3, Due: &due},
		Conflicts:   []ConflictView{{Child: "Service/sessions", Corrected: &at, Throttled: true, Corrections: 5}},
		PodShortage: &PodShortageView{EventLists: 2, Due: &at, Reason: "PodsRefused"}}
	if diff := cmp.Diff(want, state.view()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A view must not wait for a reconcile.
	state.mu.Lock()
	defer state.mu.Unlock()
	if diff := cmp.Diff(StateView{QueuedSince: &at, FirstEvent: &at, Reconciling: true}, state.view()); diff != "" {
		t.Errorf("during a reconcile (-want +got):\n%s", diff)
	}
}

func TestStateHandler_ServesEmptyArrayAndOnlyGet(t *testing.T) {
	c, err := New(Options{Hub: hubWith(t, nil), Typer: applyconfigurations.NewTypeConverter(memberScheme)})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	c.StateHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/caches", nil))
	var views []StateView
	if err := json.Unmarshal(w.Body.Bytes(), &views); err != nil || views == nil || len(views) != 0 {
		t.Errorf("%q: %v", w.Body, err)
	}
	w = httptest.NewRecorder()
	c.StateHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/debug/caches", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestNew_RequiresHubAndTyper(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no error")
	}
}

package controller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

func TestForget_DropsTheRecordOfADeletedCacheCluster(t *testing.T) {
	r := newTestReconciler(t)
	r.events = events.NewSink(nil)
	cc := sessions("eu")
	cc.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "eu", State: v1alpha1.MemberProgressing}}
	cc.ResourceVersion = "2"
	r.states.wroteStatus(cc, noon)
	r.states.wrote(cc)
	r.states.deleted(cc, &v1alpha1.MemberCache{})
	r.forget(t.Context(), event.DeleteEvent{Object: cc}, nil)
	if len(r.states.records) > 0 || r.states.progressing != 0 {
		t.Errorf("%d records, %d progressing", len(r.states.records), r.states.progressing)
	}
}

func TestStates_IsStaleUntilTheCacheShowsTheLastWrite(t *testing.T) {
	s := newStates()
	cc := sessions("eu")
	at := func(version string) *v1alpha1.CacheCluster {
		seen := cc.DeepCopy()
		seen.ResourceVersion = version
		return seen
	}
	if s.isStale(at("9")) {
		t.Error("stale although nothing was written")
	}
	s.wrote(at("10"))
	for _, c := range []struct {
		name, version string
		want          bool
	}{
		{"an older version that sorts later as text", "9", true},
		{"the version of the write", "10", false},
		{"an older version after the cache had caught up", "9", false},
	} {
		if got := s.isStale(at(c.version)); got != c.want {
			t.Errorf("%s: stale %t, want %t", c.name, got, c.want)
		}
	}
}

func TestStates_CountsTheCacheClustersThatProgress(t *testing.T) {
	s := newStates()
	one, two := sessions("eu"), sessions("eu")
	two.UID = "two"
	in := func(state v1alpha1.MemberState) v1alpha1.CacheClusterStatus {
		return v1alpha1.CacheClusterStatus{Clusters: []v1alpha1.ClusterStatus{{Name: "eu", State: state}}}
	}
	for i, step := range []struct {
		cc    *v1alpha1.CacheCluster
		state v1alpha1.MemberState
		want  int
	}{
		{one, v1alpha1.MemberProgressing, 1}, {one, v1alpha1.MemberProgressing, 1}, {two, v1alpha1.MemberProgressing, 2},
		{one, v1alpha1.MemberReady, 1}, {one, v1alpha1.MemberReady, 1}, {two, v1alpha1.MemberBlocked, 0},
	} {
		step.cc.Status = in(step.state)
		s.wroteStatus(step.cc, noon.Add(time.Duration(i)))
		if written, got := s.statusPause(step.cc); got != step.want || !written.Equal(noon.Add(time.Duration(i))) {
			t.Errorf("step %d: %d progress, want %d; written at %s", i, got, step.want, written)
		}
	}
}

func TestStatesPendingDeletions_DoesNotRepeatADeletionThatWasAccepted(t *testing.T) {
	s := newStates()
	eu, us := &v1alpha1.MemberCache{}, &v1alpha1.MemberCache{}
	eu.UID, us.UID = "eu", "us"
	eu.ResourceVersion, us.ResourceVersion = "7", "8"
	a, b := &metav1.ObjectMeta{UID: "a"}, &metav1.ObjectMeta{UID: "b"}
	both := []*v1alpha1.MemberCache{eu, us}
	pending := func(cc metav1.Object, remove ...*v1alpha1.MemberCache) (names string) {
		for _, mc := range s.pendingDeletions(cc, remove) {
			names += string(mc.UID) + " "
		}
		return names
	}
	if got := pending(a, both...); got != "eu us " {
		t.Errorf("at first: %q", got)
	}
	s.deleted(a, eu)
	for range 2 {
		if got := pending(a, both...); got != "us " {
			t.Errorf("after eu was deleted: %q", got)
		}
	}
	if got := pending(b, both...); got != "eu us " {
		t.Errorf("of another CacheCluster: %q", got)
	}
	s.deleted(a, us)
	if got := pending(a, us); got != "" {
		t.Errorf("when the cache shows that eu is being deleted: %q", got)
	}
	if got := pending(a); got != "" || len(s.records["a"].Deletions) > 0 {
		t.Errorf("when the cache shows both: %q, remembered: %v", got, s.records["a"].Deletions)
	}
	s.deleted(a, eu)
	eu.ResourceVersion = "9"
	if got := pending(a, eu); got != "eu " {
		t.Errorf("when a newer version is still to be removed: %q", got)
	}
}

func TestDebugHandler_PrintsTheSelectedRecordsSortedByName(t *testing.T) {
	r := newTestReconciler(t)
	for _, name := range []string{"b", "a", "c"} {
		cc := sessions("eu")
		cc.Name, cc.UID, cc.ResourceVersion = name, types.UID("uid-"+name), "4"
		r.states.wroteStatus(cc, noon)
	}
	names := func(query string) []string {
		w := httptest.NewRecorder()
		r.DebugHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/cacheclusters"+query, nil))
		var records []cacheState
		if err := json.Unmarshal(w.Body.Bytes(), &records); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		all := []string{}
		for _, record := range records {
			all = append(all, record.Namespace+"/"+record.Name+" "+record.LastWrite)
		}
		return all
	}
	for query, want := range map[string][]string{
		"": {"shop/a 4", "shop/b 4", "shop/c 4"}, "?name=b": {"shop/b 4"}, "?namespace=shop&name=c": {"shop/c 4"}, "?namespace=stock": {},
	} {
		if diff := cmp.Diff(want, names(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

package status

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

func TestSummarize_LeavesTheInputUnchanged(t *testing.T) {
	in := input(placed("b", ready()), placed("a", unreachable("a").Cache))
	before := Input{Members: slices.Clone(in.Members)}
	for i := range before.Members {
		before.Members[i].Cache = before.Members[i].Cache.DeepCopy()
	}
	old := v1alpha1.CacheClusterStatus{}
	old = Summarize(&old, input(placed("a", nil)))
	oldBefore := old.DeepCopy()

	Summarize(&old, in)

	if diff := cmp.Diff(before.Members, in.Members); diff != "" {
		t.Errorf("the members of the caller changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(*oldBefore, old); diff != "" {
		t.Errorf("the old status changed (-want +got):\n%s", diff)
	}
}

func TestSummarize_ProgressingNamesOnlyMembersThatProgress(t *testing.T) {
	removed := &v1alpha1.MemberCache{}
	status := Summarize(&v1alpha1.CacheClusterStatus{}, Input{Members: []Member{{Name: "a", Cache: removed}}})
	c := conditions.Get(status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil {
		t.Fatalf("Progressing is missing: %+v", status.Conditions)
	}
	if want := "removing from a: the children are about to be deleted"; c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
}

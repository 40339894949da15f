package status

import (
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestTheInputIsLeftAsItIs(t *testing.T) {
	in := Input{Members: []Member{{Name: "b", Placed: true}, {Name: "a", Placed: true}}}
	Summarize(&v1alpha1.CacheClusterStatus{}, in)
	if in.Members[0].Name != "b" {
		t.Error("the caller's members were put in another order")
	}
}

func TestOnlyWhatMovesIsSaidToMove(t *testing.T) {
	leaving := &v1alpha1.MemberCache{}
	status := Summarize(&v1alpha1.CacheClusterStatus{}, Input{Members: []Member{{Name: "a", Cache: leaving}}})
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing && c.Message != "removing from a: the children are to be removed" {
			t.Errorf("Progressing says %q", c.Message)
		}
	}
}

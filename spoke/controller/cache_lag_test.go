package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestWhatACacheLacksIsLookedForLessAndLessOften(t *testing.T) {
	var l lags
	key := types.NamespacedName{Namespace: "shop", Name: "sessions.a"}
	now := noon
	for _, want := range []string{"2s", "2s", "4s", "8s", "16s", "30s", "30s"} {
		got := l.look(key, true, now)
		if got.String() != want {
			t.Errorf("after %s: looked for again after %s, want %s", now.Sub(noon), got, want)
		}
		now = now.Add(got)
	}
	if got := l.look(key, false, now); got != 0 || len(l.since) > 0 {
		t.Errorf("nothing lacks: %s, %v", got, l.since)
	}
	// A clock that was set back must not put it off.
	l.look(key, true, now)
	if got := l.look(key, true, noon); got != firstLag {
		t.Errorf("by an earlier clock: %s", got)
	}
	l.forget(key)
	if len(l.since) > 0 {
		t.Error("a MemberCache that is gone is remembered")
	}
}

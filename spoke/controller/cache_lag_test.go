package controller

import "testing"

func TestCacheLag_RequeuesWithGrowingInterval(t *testing.T) {
	var l cacheLag
	now := noon
	for _, want := range []string{"2s", "2s", "4s", "8s", "16s", "30s", "30s"} {
		got := l.update(true, now)
		if got.String() != want {
			t.Errorf("after %s: requeue after %s, want %s", now.Sub(noon), got, want)
		}
		now = now.Add(got)
	}
	if got := l.update(false, now); got != 0 || l != (cacheLag{}) {
		t.Errorf("no lag: %s, %v", got, l)
	}
	// A clock that was set back must not delay the next reconcile.
	l.update(true, now)
	if got := l.update(true, noon); got != firstLag {
		t.Errorf("by an earlier clock: %s", got)
	}
}

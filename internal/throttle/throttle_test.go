package throttle

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestPause_GrowsWithTheObjectsThatChangeUpToItsMaximum(t *testing.T) {
	burst := Pause{Base: 2 * time.Second, PerObject: 100 * time.Millisecond, Max: 10 * time.Second}
	for objects, want := range map[int]time.Duration{0: 2 * time.Second, 1: 2 * time.Second, 2: 2100 * time.Millisecond, 50: 6900 * time.Millisecond, 500: 10 * time.Second} {
		if got := burst.For(objects); got != want {
			t.Errorf("%d objects: %s, want %s", objects, got, want)
		}
	}
	if got := (Pause{Base: time.Second}).For(50); got != time.Second {
		t.Errorf("a pause without a maximum is %s", got)
	}
}

func TestPauseRemaining_IsZeroUnlessThePauseRuns(t *testing.T) {
	pause := Pause{Base: time.Second}
	for _, c := range []struct {
		name  string
		start time.Time
		want  time.Duration
	}{
		{"it never began", time.Time{}, 0},
		{"it began just now", noon, time.Second},
		{"it runs", noon.Add(-300 * time.Millisecond), 700 * time.Millisecond},
		{"it is over", noon.Add(-time.Second), 0},
		{"it was over long ago", noon.Add(-time.Hour), 0},
		{"the clock was set back", noon.Add(time.Hour), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pause.Remaining(c.start, 1, noon); got != c.want {
				t.Errorf("%s remain, want %s", got, c.want)
			}
		})
	}
}

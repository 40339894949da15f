package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyWhatBeganLatelyCounts(t *testing.T) {
	m := memo{entries: map[types.NamespacedName]remembered{}}
	for name, ago := range map[string]time.Duration{"old": time.Hour, "just over": longestPause, "young": time.Second, "new": 0} {
		m.entries[types.NamespacedName{Name: name}] = remembered{since: noon.Add(-ago)}
	}
	if n := m.begun(noon.Add(-longestPause)); n != 2 {
		t.Errorf("%d began lately, want young and new", n)
	}
}

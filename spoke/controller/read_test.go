package controller

import "testing"

func TestIsPodOf_MatchesNamesOfStatefulSetPods(t *testing.T) {
	for name, is := range map[string]bool{"sessions-0": true, "sessions-12": true, "sessions": false, "sessions-": false, "sessions-x": false,
		"other-0": false, "sessions-a-0": false, "sessions-+1": false} {
		if isPodOf("sessions", name) != is {
			t.Errorf("%s: want %t", name, is)
		}
	}
}

package faults

import (
	"fmt"
	"strings"
	"testing"
)

func TestComplaints(t *testing.T) {
	// Distinct points, the first write of an object or a later one.
	points := func(n, of int) []Case {
		cases := make([]Case, n)
		for i := range cases {
			cases[i] = Case{"create", Point{Place{"member-1", "apply", "statefulsets", fmt.Sprint("cache-", i)}, of}, Lost}
		}
		return cases
	}
	for _, c := range []struct {
		name  string
		tally Tally
		says  []string
	}{
		{"every fault was injected", Tally{Chosen: 220, Injected: 220}, nil},
		{"nothing was chosen", Tally{}, nil},
		{"a case failed, which fails by itself", Tally{Chosen: 1, Injected: 1}, nil},
		{"the only case was not reached", Tally{Chosen: 1, NotReached: points(1, 2)},
			[]string{"none of 1 cases had its fault injected (1 not reached, 0 not run): nothing was tested", "make faults CASE='create/member-1:apply:statefulsets:cache-0:2/lost'"}},
		{"the time was over before the first", Tally{Chosen: 9, NotRun: 9}, []string{"none of 9 cases had its fault injected (0 not reached, 9 not run)"}},
		{"a few optional points in a small selection", Tally{Chosen: 5, Injected: 2, NotReached: points(3, 2)}, nil},
		{"more than a few in a small selection", Tally{Chosen: 6, Injected: 2, NotReached: points(4, 2)}, []string{"4 of 6 points were not reached"}},
		{"the tolerated share", Tally{Chosen: 220, Injected: 198, NotReached: points(22, 2)}, nil},
		{"more than the tolerated share", Tally{Chosen: 220, Injected: 197, NotReached: points(23, 2)},
			[]string{"23 of 220 points were not reached, more than 3 and 10 %", "repeat it on a quiet machine"}},
		{"the first write of an object", Tally{Chosen: 220, Injected: 219, NotReached: points(1, 1)},
			[]string{"create/member-1:apply:statefulsets:cache-0:1/lost: not reached, although no run can converge without this write"}},
		{"a namespace that is not empty", Tally{Chosen: 1, Injected: 1, Remaining: []string{"namespace x is not empty"}}, []string{"namespace x is not empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := strings.Join(c.tally.Complaints(), "\n")
			if len(c.says) == 0 && found != "" {
				t.Errorf("complaints:\n%s", found)
			}
			for _, part := range c.says {
				if !strings.Contains(found, part) {
					t.Errorf("complaints %q, want one with %q", found, part)
				}
			}
		})
	}
}

func TestPoint_OptionalUnlessItIsTheFirstWrite(t *testing.T) {
	for name, optional := range map[string]bool{
		"member-1:apply:statefulsets:cache:1":            false,
		"member-1:patch:services:cache:1":                false,
		"member-1:delete:services:cache:1":               false,
		"hub:create:membercaches:cache.member-1:1":       false,
		"hub:create:membercaches:cache.member-1:2":       true,
		"member-1:get:services:cache:1":                  true,
		"member-1:dry-apply:statefulsets:cache:1":        true,
		"hub:patch:membercaches.status:cache.member-1:1": true,
		"hub:create:events::1":                           true,
		"member-1:MODIFIED:statefulset:cache:1":          true,
		"hub:ADDED:membercache:cache.member-1:1":         true,
	} {
		p, err := ParsePoint(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Optional() != optional {
			t.Errorf("%s: optional %t, want %t", name, p.Optional(), optional)
		}
	}
}

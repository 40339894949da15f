package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, variables map[string]string) (Settings, error) {
	t.Helper()
	return ReadSettings(func(name string) string { return variables[name] }, []string{"create", "delete", "place-less"}, 7)
}

func TestReadSettings_RefusesBadValues(t *testing.T) {
	for _, c := range []struct{ name, variable, value, says string }{
		{"a seed that is no number", "FAULTS_SEED", "abc", `SEED: "abc": must be a whole number`},
		{"a negative seed", "FAULTS_SEED", "-1", `SEED: "-1": must be a whole number of 0 or more`},
		{"FULL that is no boolean", "FAULTS_FULL", "maybe", `FULL: "maybe": must be 1 or 0`},
		{"a part without a total", "FAULTS_PART", "2", `PART: "2": must be NUMBER/OF`},
		{"a part above its total", "FAULTS_PART", "4/3", `PART: "4/3": must be NUMBER/OF`},
		{"part 0", "FAULTS_PART", "0/3", `PART: "0/3": must be NUMBER/OF`},
		{"a part with a rest", "FAULTS_PART", "1/3x", `PART: "1/3x": must be NUMBER/OF`},
		{"an unknown fault", "FAULTS_ONLY", "losst", `FAULT: "losst": unknown fault; use one of: refused, reset, timeout, lost, 409`},
		{"an unknown fault after a known one", "FAULTS_ONLY", "lost,404", `FAULT: "404": unknown fault`},
		{"an empty fault in a list", "FAULTS_ONLY", "lost,", `FAULT: "": unknown fault`},
		{"an unknown scenario", "FAULTS_CASE", "craete", `CASE: "craete": unknown scenario "craete"; use history, or one of: create, delete`},
		{"a point without its parts", "FAULTS_CASE", "create/hub:get", `the point "hub:get" must be SERVER:VERB:KIND:NAME:N`},
		{"a point without a number", "FAULTS_CASE", "create/hub:get:services:cache:x", "must end in a number of 1 or more"},
		{"an unknown fault in a case", "FAULTS_CASE", "create/hub:get:services:cache:1/losst", `CASE: "losst": unknown fault; use one of: refused`},
		{"an event's fault at a request", "FAULTS_CASE", "create/hub:get:services:cache:1/stale", `CASE: "stale": unknown fault; use one of: refused`},
		{"a request's fault at an event", "FAULTS_CASE", "create/hub:ADDED:service:cache:1/lost", `CASE: "lost": unknown fault; use one of: closed`},
		{"a history without a number", "FAULTS_CASE", "history/x", `CASE: "history/x": the seed "x" must be a whole number; use history/SEED`},
		{"no run at the same time", "FAULTS_PARALLEL", "0", `FAULTS_PARALLEL: "0": must be a whole number of 1 or more`},
		{"a sample that is no number", "FAULTS_SAMPLE", "all", `FAULTS_SAMPLE: "all": must be a whole number`},
		{"minutes with a unit", "FAULTS_MINUTES", "5m", `FAULTS_MINUTES: "5m": must be a whole number`},
		{"histories below 0", "FAULTS_HISTORIES", "-1", `FAULTS_HISTORIES: "-1": must be a whole number of 0 or more`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(t, map[string]string{c.variable: c.value})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
}

func TestReadSettings_ReadsEveryVariable(t *testing.T) {
	s, err := read(t, map[string]string{"FAULTS_FULL": "1", "FAULTS_SEED": "42", "FAULTS_PART": "2/3", "FAULTS_ONLY": "lost,409", "FAULTS_CASE": "create/",
		"FAULTS_REPORT": "r.json", "FAULTS_PARALLEL": "3", "FAULTS_SAMPLE": "10", "FAULTS_MINUTES": "5", "FAULTS_HISTORIES": "0"})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Full || s.Seed != 42 || s.Part != 2 || s.Parts != 3 || !slices.Equal(s.Faults, []Fault{Lost, Conflict}) || s.Case.String() != "create" ||
		s.Report != "r.json" || s.Parallel != 3 || s.Sample != 10 || s.Minutes != 5 || s.Histories != 0 {
		t.Errorf("settings %+v", s)
	}
	s, err = read(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Full || s.Seed != 7 || s.Part != 1 || s.Parts != 1 || s.Faults != nil || s.Case != nil || s.Report != "faults.json" ||
		s.Parallel != 12 || s.Sample != 220 || s.Minutes != 0 || s.Histories != -1 {
		t.Errorf("defaults %+v", s)
	}
	for text, seed := range map[string]uint64{"history/42001": 42001, "history/0": 0} {
		s, err := read(t, map[string]string{"FAULTS_CASE": text})
		if err != nil || s.Case.Scenario != Histories || s.Case.History == nil || *s.Case.History != seed {
			t.Errorf("%s: %+v, %v", text, s.Case, err)
		}
	}
}

// allCases are the cases of two scenarios with three points each.
func allCases() []Case {
	points := []Point{
		{Place{"hub", "create", "membercaches", "cache.member-1"}, 1},
		{Place{"member-1", "apply", "statefulsets", "cache"}, 1},
		{Place{"member-1", "MODIFIED", "statefulset", "cache"}, 2},
	}
	return slices.Concat(Cases("create", points), Cases("delete", points))
}

func choose(t *testing.T, variables map[string]string) ([]Case, error) {
	t.Helper()
	s, err := read(t, variables)
	if err != nil {
		t.Fatal(err)
	}
	return s.Choose(allCases())
}

func TestChoose_FailsWithoutACase(t *testing.T) {
	for _, c := range []struct {
		name      string
		variables map[string]string
		says      []string
	}{
		{"a point that no clean run meets", map[string]string{"FAULTS_CASE": "create/member-1:aply:statefulsets:cache:1"},
			[]string{"no clean run reaches this point", "\n  create/member-1:apply:statefulsets:cache:1\n"}},
		{"a case of such a point", map[string]string{"FAULTS_CASE": "create/member-1:apply:statefulsets:cache:9/lost"},
			[]string{"no clean run reaches this point", "nearest of 54 are:\n  create/member-1:apply:statefulsets:cache:1/lost\n"}},
		{"a scenario that was not run", map[string]string{"FAULTS_CASE": "place-less"}, []string{"no clean run reaches this point"}},
		{"a case and another fault", map[string]string{"FAULTS_CASE": "create/member-1:apply:statefulsets:cache:1/lost", "FAULTS_ONLY": "409"},
			[]string{"has no case with FAULT=[409]", "unset FAULT or CASE"}},
		{"more parts than cases", map[string]string{"FAULTS_CASE": "create/member-1:apply:statefulsets:cache:1/lost", "FAULTS_PART": "2/2"},
			[]string{"PART: 2/2: holds no case", "use fewer parts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cases, err := choose(t, c.variables)
			if err == nil {
				t.Fatalf("no error, but %d cases", len(cases))
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want one with %q", err, part)
				}
			}
		})
	}
	s, err := read(t, map[string]string{"FAULTS_ONLY": "stale"})
	if err != nil {
		t.Fatal(err)
	}
	requests := Cases("create", []Point{{Place{"hub", "get", "services", "cache"}, 1}})
	if cases, err := s.Choose(requests); err == nil || !strings.Contains(err.Error(), "no case exists for FAULT=[stale]") {
		t.Errorf("%d cases, error %v", len(cases), err)
	}
}

func TestChoose_SelectsAsTheSettingsSay(t *testing.T) {
	for _, c := range []struct {
		name      string
		variables map[string]string
		want      int
	}{
		{"everything, below the size of a sample", nil, 54},
		{"a sample", map[string]string{"FAULTS_SAMPLE": "20"}, 20},
		{"everything with FULL", map[string]string{"FAULTS_SAMPLE": "20", "FAULTS_FULL": "1"}, 54},
		{"a scenario", map[string]string{"FAULTS_CASE": "create", "FAULTS_SAMPLE": "20"}, 27},
		{"a point", map[string]string{"FAULTS_CASE": "create/member-1:apply:statefulsets:cache:1/"}, 11},
		{"a case", map[string]string{"FAULTS_CASE": "create/member-1:apply:statefulsets:cache:1/lost"}, 1},
		{"some faults", map[string]string{"FAULTS_ONLY": "lost,stale"}, 6},
		{"some faults of a scenario", map[string]string{"FAULTS_CASE": "delete", "FAULTS_ONLY": "lost,stale"}, 3},
		{"a part", map[string]string{"FAULTS_PART": "1/4", "FAULTS_SAMPLE": "5"}, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			cases, err := choose(t, c.variables)
			if err != nil || len(cases) != c.want {
				t.Errorf("%d cases, want %d: %v", len(cases), c.want, err)
			}
			again, err := choose(t, c.variables)
			if err != nil || !slices.Equal(cases, again) {
				t.Errorf("the same settings select other cases: %v", err)
			}
		})
	}
}

func TestChoose_PartsAreTheWhole(t *testing.T) {
	seen := map[Case]int{}
	for part := range 3 {
		cases, err := choose(t, map[string]string{"FAULTS_PART": fmt.Sprintf("%d/3", part+1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			seen[c]++
		}
	}
	for _, c := range allCases() {
		if seen[c] != 1 {
			t.Errorf("%s is in %d parts", c, seen[c])
		}
	}
}

func TestChoose_SampleHasEveryFaultOfEveryScenario(t *testing.T) {
	cases, err := choose(t, map[string]string{"FAULTS_SAMPLE": "32"})
	if err != nil {
		t.Fatal(err)
	}
	type group struct {
		scenario string
		fault    Fault
	}
	seen := map[group]bool{}
	for _, c := range cases {
		seen[group{c.Scenario, c.Fault}] = true
	}
	if want := 2 * len(AllFaults()); len(seen) != want {
		t.Errorf("%d of %d pairs of scenario and fault", len(seen), want)
	}
}

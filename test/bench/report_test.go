package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestTheReportHasTheKeysThatAreAlwaysThere(t *testing.T) {
	raw, err := json.Marshal(report{Writes: writes{}})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	latency := []string{"p50ms", "p90ms", "p99ms", "trials"}
	for key, inside := range map[string][]string{
		"driftRepair": latency, "floor": latency, "applyToPresent": latency, "applyToReady": latency,
		"writes":  {"memberPerRepair", "hubPerRepair", "hubPerCreate", "idle", "afterRestart"},
		"manager": {"rssBytes", "cpuSeconds"},
		"members": nil, "caches": nil,
	} {
		value, there := keys[key]
		if !there {
			t.Errorf("there is no %s", key)
			continue
		}
		for _, k := range inside {
			if _, there := value.(map[string]any)[k]; !there {
				t.Errorf("%s has no %s", key, k)
			}
		}
	}
}

func TestTheTableSaysWhatMissedItsGoal(t *testing.T) {
	r := report{Members: 3, Caches: 50, Ratios: &ratios{DriftP50: 1.31, DriftP90: 1.8}, PerOperation: map[string]operation{
		"idle":   {},
		"repair": {Hub: counts{"PATCH membercaches/status": 1, "PATCH cacheclusters/status": 1.25}},
	}}
	var out bytes.Buffer
	r.print(&out)
	lines := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	for name, want := range map[string]string{
		"repair to floor, p50": "1.31 x at most 1.3 x missed",
		"repair to floor, p90": "1.8 x at most 1.8 x",
		"writes when idle":     "0 at most 0",
		"repair":               "hub 1.25 PATCH cacheclusters/status, 1 PATCH membercaches/status",
	} {
		if lines[name] != want {
			t.Errorf("%q says %q, want %q; there are %q", name, lines[name], want, slices.Sorted(maps.Keys(lines)))
		}
	}
}

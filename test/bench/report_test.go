package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReport_HasTheKeysThatAreAlwaysThere(t *testing.T) {
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
		value, ok := keys[key]
		if !ok {
			t.Errorf("%s is missing", key)
			continue
		}
		for _, k := range inside {
			if _, ok := value.(map[string]any)[k]; !ok {
				t.Errorf("%s.%s is missing", key, k)
			}
		}
	}
}

// tableLines returns the lines of a table by their first column, with single spaces.
func tableLines(text string) map[string]string {
	lines := map[string]string{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	return lines
}

func TestReport_MarksMissedGoals(t *testing.T) {
	r := report{
		Members: 3, Caches: 50, Ratios: &ratios{DriftP50: 1.31, DriftP90: 1.8},
		ApplyToPresent: latency{P50: 64}, ChildrenPresent: &latency{}, StatusLag: &latency{}, BareCreate: &latency{P50: 40},
		CreateAll: &together{Present: 4000}, BareCreateAll: &presence{Last: 2000}, StatusLagAll: &lag{P50: 510, Max: 800},
		Manager: usage{HeapCaches: 400, BytesPerMemberCache: 20_100, EmptyHeapBytes: 9e6, HeapBytes: 33.12e6},
		PerOperation: map[string]operation{
			"idle": {},
			"repair": {Hub: counts{"PATCH membercaches/status": 1, "PATCH cacheclusters/status": 1.25},
				Reconciles: counts{"spoke success": 2}, CPUSeconds: .0125},
		}}
	var out strings.Builder
	r.print(&out)
	lines := tableLines(out.String())
	for name, want := range map[string]string{
		"correction to floor, p50":                        "1.31 x at most 1.3 x missed",
		"correction to floor, p90":                        "1.8 x at most 1.8 x",
		"writes while idle":                               "0 at most 0",
		"create to bare client, p50":                      "1.6 x at most 1.5 x missed",
		"created at once to bare client, last":            "2 x at most 2 x",
		"members ready to Ready on the hub, at once, p50": "0.51 s at most 0.5 s missed",
		"live heap per MemberCache":                       "20.1 kB at most 20 kB missed",
		"live heap of the manager with 400 CacheClusters": "33.12 MB",
		"repair":     "hub 1.25 PATCH cacheclusters/status, 1 PATCH membercaches/status",
		"CPU":        "12.5 ms",
		"reconciles": "2 spoke success",
	} {
		if lines[name] != want {
			t.Errorf("%q: %q, want %q; the table has %q", name, lines[name], want, slices.Sorted(maps.Keys(lines)))
		}
	}
}

func TestBurst_SplitsTheLag(t *testing.T) {
	b := burst{caches: []progress{
		{reported: 100 * time.Millisecond, summarized: 300 * time.Millisecond, lag: 400 * time.Millisecond},
		{reported: 0, summarized: 0, lag: 0},
		{reported: 200 * time.Millisecond, summarized: 50 * time.Millisecond, lag: 250 * time.Millisecond},
	}}
	if got, want := b.lag(), (lag{P50: 250, Max: 400, ReportedP50: 100, ReportedMax: 200, SummarizedP50: 50, SummarizedMax: 300}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

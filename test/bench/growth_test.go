package main

import (
	"slices"
	"strings"
	"testing"
)

// growthReport has 4 and 16 times the caches of its first row.
func growthReport() report {
	rows := []growthRow{
		{Caches: 50, PresentLastS: 2, RequestsPerCache: 40, HeapBytes: 10e6, BytesPerMemberCache: 15e3, DriftP50Ms: 6, RestartReconcilesPerCache: 1},
		{Caches: 200, PresentLastS: 8, RequestsPerCache: 47, HeapBytes: 60e6, BytesPerMemberCache: 30e3, DriftP50Ms: 12, RestartReconcilesPerCache: 1},
		{Caches: 800, PresentLastS: 39, RequestsPerCache: 47, HeapBytes: 900e6, BytesPerMemberCache: 90e3, DriftP50Ms: 24, RestartReconcilesPerCache: 3.5},
	}
	g := &growth{Rows: rows}
	for _, c := range growthCosts() {
		if c.growsFaster(rows) {
			g.Faster = append(g.Faster, c.name)
		}
	}
	return report{Growth: g}
}

func TestGrowth_MarksCostsThatGrowFasterThanTheCaches(t *testing.T) {
	// 39 s is 1.22 times the proportional 32 s. Memory may grow faster.
	want := []string{"create at once: all present", "restart: spoke reconciles per MemberCache"}
	if got := growthReport().Growth.Faster; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGrowth_PrintsOneColumnForEachSize(t *testing.T) {
	r := growthReport()
	var out strings.Builder
	r.printGrowth(&out)
	lines := tableLines(out.String())
	for name, want := range map[string]string{
		"COST AT SIZE":                              "50 200 800 GOAL",
		"create at once: all present":               "2 s 8 s 39 s grows faster than the number of caches",
		"requests per cache":                        "40 47 47",
		"live heap per MemberCache":                 "15 kB 30 kB 90 kB at most 20 kB missed",
		"restart: spoke reconciles per MemberCache": "1 1 3.5 at most 1 missed grows faster than the number of caches",
	} {
		if lines[name] != want {
			t.Errorf("%q: %q, want %q", name, lines[name], want)
		}
	}
}

package main

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"time"
)

// report is bench.json. Times are in milliseconds or seconds as their names say;
// what was not measured is left out, except for the keys that are always there.
type report struct {
	Members int `json:"members"`
	Caches  int `json:"caches"`

	DriftRepair    latency `json:"driftRepair"`
	Floor          latency `json:"floor"`
	ApplyToPresent latency `json:"applyToPresent"`
	ApplyToReady   latency `json:"applyToReady"`
	Writes         writes  `json:"writes"`
	Manager        usage   `json:"manager"`

	Trials          int                  `json:"trials"`
	UpS             float64              `json:"upS,omitempty"`
	Ratios          *ratios              `json:"ratios,omitempty"`
	ChildrenPresent *latency             `json:"childrenPresent,omitempty"`
	StatusLag       *latency             `json:"statusLag,omitempty"`
	CreateAll       *together            `json:"createAll,omitempty"`
	BareCreate      *latency             `json:"bareCreate,omitempty"`
	BareCreateAll   *presence            `json:"bareCreateAll,omitempty"`
	Restart         *restart             `json:"restart,omitempty"`
	HungMember      *hung                `json:"hungMember,omitempty"`
	PerOperation    map[string]operation `json:"requestsPerOperation"`
}

type latency struct {
	P50    float64 `json:"p50ms"`
	P90    float64 `json:"p90ms"`
	P99    float64 `json:"p99ms"`
	Trials int     `json:"trials"`
}

// writes of the manager: requests that change something, leases apart.
type writes struct {
	MemberPerRepair float64 `json:"memberPerRepair"`
	HubPerRepair    float64 `json:"hubPerRepair"`
	HubPerCreate    float64 `json:"hubPerCreate"`
	// HubPerCreateAll is per cache where all were created at once.
	HubPerCreateAll float64 `json:"hubPerCreateAll"`
	// Idle and AfterRestart are on the hub and in all members together.
	Idle         float64 `json:"idle"`
	AfterRestart float64 `json:"afterRestart"`
}

type usage struct {
	// RSSBytes with all caches there and nothing to do; CPUSeconds of the whole run.
	RSSBytes     int64   `json:"rssBytes"`
	RSSPeakBytes int64   `json:"rssPeakBytes"`
	CPUSeconds   float64 `json:"cpuSeconds"`
}

// ratios of the manager to the floor.
type ratios struct {
	DriftP50 float64 `json:"driftP50"`
	DriftP90 float64 `json:"driftP90"`
}

// together is what all caches took that were created at once, from the first
// request on.
type together struct {
	PresentP50 float64 `json:"presentP50ms"`
	Present    float64 `json:"presentLastMs"`
	ReadyP50   float64 `json:"readyP50ms"`
	Ready      float64 `json:"readyLastMs"`
}

// presence is from the first request on until the StatefulSets were seen in all members.
type presence struct {
	P50  float64 `json:"presentP50ms"`
	Last float64 `json:"presentLastMs"`
}

type restart struct {
	StopS      float64 `json:"stopS"`
	StartS     float64 `json:"startS"`
	QuietS     float64 `json:"quietAfterS"`
	BackAtWork float64 `json:"backAtWorkS"`
}

type hung struct {
	HealthyP50      float64 `json:"healthyP50ms"`
	HungP50         float64 `json:"hungP50ms"`
	HealthyDriftP50 float64 `json:"healthyDriftP50ms"`
	HungDriftP50    float64 `json:"hungDriftP50ms"`
	LossReportedS   float64 `json:"lossReportedS"`
	LandedS         float64 `json:"pendingLandedS"`
	CreateRatio     float64 `json:"createRatioP50"`
	DriftRatio      float64 `json:"driftRatioP50"`
}

func latencies(all []time.Duration) latency {
	return latency{ms(quantile(all, .5)), ms(quantile(all, .9)), ms(quantile(all, .99)), len(all)}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return math.Round(100*a/b) / 100
}

func (r *report) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// quantile of durations, by nearest rank: the least that a share q of all does
// not exceed. 0 if there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

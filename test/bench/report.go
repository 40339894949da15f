package main

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"time"
)

// report is bench.json. The names of the keys contain the units. Keys without omitempty
// are always there, also where nothing was measured.
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
	StatusLagAll    *lag                 `json:"statusLagAll,omitempty"`
	BareCreate      *latency             `json:"bareCreate,omitempty"`
	BareCreateAll   *presence            `json:"bareCreateAll,omitempty"`
	Restart         *restart             `json:"restart,omitempty"`
	HungMember      *hung                `json:"hungMember,omitempty"`
	Growth          *growth              `json:"growth,omitempty"`
	PerOperation    map[string]operation `json:"requestsPerOperation"`
}

type latency struct {
	P50    float64 `json:"p50ms"`
	P90    float64 `json:"p90ms"`
	P99    float64 `json:"p99ms"`
	Trials int     `json:"trials"`
}

// writes are the manager's mutating requests without those for leases.
type writes struct {
	MemberPerRepair float64 `json:"memberPerRepair"`
	HubPerRepair    float64 `json:"hubPerRepair"`
	HubPerCreate    float64 `json:"hubPerCreate"`
	// HubPerCreateAll is per cache, where all caches are created at once.
	HubPerCreateAll float64 `json:"hubPerCreateAll"`
	// Idle and AfterRestart are the sums of the hub and all members.
	Idle         float64 `json:"idle"`
	AfterRestart float64 `json:"afterRestart"`
}

type usage struct {
	// RSSBytes is the resident memory with all caches at rest.
	RSSBytes     int64 `json:"rssBytes"`
	RSSPeakBytes int64 `json:"rssPeakBytes"`
	// CPUSeconds is the CPU time of the whole run.
	CPUSeconds float64 `json:"cpuSeconds"`
	// BytesPerMemberCache is HeapBytes less EmptyHeapBytes, per MemberCache.
	BytesPerMemberCache float64 `json:"bytesPerMemberCache,omitempty"`
	// HeapCaches is the number of caches at HeapBytes.
	HeapCaches int `json:"heapCaches,omitempty"`
	// EmptyHeapBytes and HeapBytes are live after a collection.
	EmptyHeapBytes float64 `json:"emptyHeapBytes,omitempty"`
	HeapBytes      float64 `json:"heapBytes,omitempty"`
}

// ratios compare the manager with the floor.
type ratios struct {
	DriftP50 float64 `json:"driftP50"`
	DriftP90 float64 `json:"driftP90"`
}

// together holds durations from the first of many requests that are sent at once.
type together struct {
	PresentP50 float64 `json:"presentP50ms"`
	Present    float64 `json:"presentLastMs"`
	ReadyP50   float64 `json:"readyP50ms"`
	Ready      float64 `json:"readyLastMs"`
	// HubReconciles is per cache, SpokeReconciles is per MemberCache.
	HubReconciles   float64 `json:"hubReconcilesPerCache"`
	SpokeReconciles float64 `json:"spokeReconcilesPerMemberCache"`
}

// lag is from the last member's ready StatefulSet to Ready on the hub. Reported is the
// part until every MemberCache is Ready, Summarized is the part from there on.
type lag struct {
	P50           float64 `json:"p50ms"`
	Max           float64 `json:"maxMs"`
	ReportedP50   float64 `json:"memberCacheP50ms"`
	ReportedMax   float64 `json:"memberCacheMaxMs"`
	SummarizedP50 float64 `json:"cacheClusterP50ms"`
	SummarizedMax float64 `json:"cacheClusterMaxMs"`
}

// presence holds durations from the first request to the StatefulSets in all members.
type presence struct {
	P50  float64 `json:"presentP50ms"`
	Last float64 `json:"presentLastMs"`
}

type restart struct {
	StopS      float64 `json:"stopS"`
	StartS     float64 `json:"startS"`
	QuietS     float64 `json:"quietAfterS"`
	BackAtWork float64 `json:"backAtWorkS"`
	// SpokeReconciles is per MemberCache, with nothing to do.
	SpokeReconciles float64 `json:"spokeReconcilesPerMemberCache"`
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

// ratio returns a/b with two decimals, or 0 where b is 0.
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

// quantile returns the nearest rank: the least duration that a share q of all durations
// does not exceed. It returns 0 where there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// elapsed returns the seconds from start to end, at least 0.
func elapsed(start, end time.Time) float64 { return max(0, end.Sub(start).Seconds()) }

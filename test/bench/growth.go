package main

import (
	"context"
	"time"
)

// growthRow is the cost of one number of CacheClusters, each in every member and
// without pods.
type growthRow struct {
	Caches int `json:"caches"`
	// PresentLastS and ReadyLastS are from the first request to the last cache.
	PresentLastS float64 `json:"presentLastS"`
	ReadyLastS   float64 `json:"readyLastS"`
	// The costs of creating all caches at once, per cache or per MemberCache.
	RequestsPerCache              float64 `json:"requestsPerCache"`
	HubWritesPerCache             float64 `json:"hubWritesPerCache"`
	CPUSecondsPerCache            float64 `json:"cpuSecondsPerCache"`
	HubReconcilesPerCache         float64 `json:"hubReconcilesPerCache"`
	SpokeReconcilesPerMemberCache float64 `json:"spokeReconcilesPerMemberCache"`
	// HeapBytes is the live heap with all caches at rest.
	HeapBytes           float64 `json:"heapBytes"`
	BytesPerMemberCache float64 `json:"bytesPerMemberCache"`
	// Drift of one cache with pods, next to all others.
	DriftP50Ms    float64 `json:"driftP50ms"`
	FloorP50Ms    float64 `json:"floorP50ms"`
	DriftRatioP50 float64 `json:"driftRatioP50"`
	// RestartQuietS is from the manager's start to its last reconcile.
	RestartQuietS             float64 `json:"restartQuietS"`
	RestartReconcilesPerCache float64 `json:"restartSpokeReconcilesPerMemberCache"`
	RestartWrites             float64 `json:"restartWrites"`
	RestartCPUSecondsPerCache float64 `json:"restartCpuSecondsPerCache"`
}

// growthTolerance is the factor by which a cost may exceed proportional growth before
// it is marked: runs of the same code differ that much.
const growthTolerance = 1.2

// growthCost is one column of the growth table.
type growthCost struct {
	name, unit string
	// value is the printed figure, total the cost of all caches of the row.
	value func(growthRow) float64
	total func(growthRow) float64
	goal  float64
}

// perCache makes a cost of one cache a cost of all caches.
func perCache(value func(growthRow) float64) func(growthRow) float64 {
	return func(r growthRow) float64 { return value(r) * float64(r.Caches) }
}

// growthCosts lists the costs in the order of the table. Memory is listed without a
// total: it may grow faster than the number of caches.
func growthCosts() []growthCost {
	whole := func(name, unit string, goal float64, value func(growthRow) float64) growthCost {
		return growthCost{name, unit, value, value, goal}
	}
	single := func(name, unit string, goal float64, value func(growthRow) float64) growthCost {
		return growthCost{name, unit, value, perCache(value), goal}
	}
	return []growthCost{
		whole("create at once: all present", "s", noGoal, func(r growthRow) float64 { return r.PresentLastS }),
		whole("create at once: all Ready", "s", noGoal, func(r growthRow) float64 { return r.ReadyLastS }),
		single("requests per cache", "", noGoal, func(r growthRow) float64 { return r.RequestsPerCache }),
		single("hub writes per cache", "", hubWritesGoal, func(r growthRow) float64 { return r.HubWritesPerCache }),
		single("CPU time per cache", "ms", noGoal, func(r growthRow) float64 { return 1000 * r.CPUSecondsPerCache }),
		single("hub reconciles per cache", "", noGoal, func(r growthRow) float64 { return r.HubReconcilesPerCache }),
		single("spoke reconciles per MemberCache", "", noGoal, func(r growthRow) float64 { return r.SpokeReconcilesPerMemberCache }),
		{"live heap", "MB", func(r growthRow) float64 { return r.HeapBytes / 1e6 }, nil, noGoal},
		{"live heap per MemberCache", "kB", func(r growthRow) float64 { return r.BytesPerMemberCache / 1e3 }, nil, bytesPerMemberCacheGoal / 1e3},
		whole("drift p50", "ms", noGoal, func(r growthRow) float64 { return r.DriftP50Ms }),
		whole("drift p50 to the floor's", "x", driftP50Goal, func(r growthRow) float64 { return r.DriftRatioP50 }),
		whole("restart: start to the last reconcile", "s", noGoal, func(r growthRow) float64 { return r.RestartQuietS }),
		single("restart: spoke reconciles per MemberCache", "", 1, func(r growthRow) float64 { return r.RestartReconcilesPerCache }),
		whole("restart: writes", "", 0, func(r growthRow) float64 { return r.RestartWrites }),
		single("restart: CPU time per cache", "ms", noGoal, func(r growthRow) float64 { return 1000 * r.RestartCPUSecondsPerCache }),
	}
}

// growsFaster reports whether the cost of any row exceeds that of the first row in more
// than the proportion of the caches.
func (c growthCost) growsFaster(rows []growthRow) bool {
	if c.total == nil || len(rows) == 0 {
		return false
	}
	first := rows[0]
	for _, r := range rows[1:] {
		allowed := c.total(first) * float64(r.Caches) / float64(first.Caches)
		if c.total(r) > growthTolerance*allowed && c.total(r) > 0 {
			return true
		}
	}
	return false
}

// growth is the section of bench.json.
type growth struct {
	Rows []growthRow `json:"rows"`
	// Faster names the costs that grow faster than the number of caches, memory apart.
	Faster []string `json:"fasterThanCaches"`
}

// measureGrowth repeats the same measurements with more and more caches.
func (f *fleet) measureGrowth(ctx context.Context) error {
	g := &growth{Faster: []string{}}
	for _, n := range f.sizes {
		row, err := f.measureSize(ctx, n)
		if err != nil {
			return err
		}
		g.Rows = append(g.Rows, row)
	}
	for _, c := range growthCosts() {
		if c.growsFaster(g.Rows) {
			g.Faster = append(g.Faster, c.name)
		}
	}
	f.report.Growth = g
	return f.removeAll(ctx)
}

func (f *fleet) measureSize(ctx context.Context, n int) (row growthRow, err error) {
	empty, err := f.startEmpty(ctx)
	if err != nil {
		return row, err
	}
	b, err := f.createBurst(ctx, cacheNames("grow", n), 0)
	if err != nil {
		return row, err
	}
	full, err := f.manager.liveHeap(ctx)
	if err != nil {
		return row, err
	}
	used := b.used.divide(n)
	row = growthRow{
		Caches: n, PresentLastS: quantile(b.present(), 1).Seconds(), ReadyLastS: quantile(b.ready(), 1).Seconds(),
		RequestsPerCache: used.Manager.total(""), HubWritesPerCache: used.Hub.writes(), CPUSecondsPerCache: used.CPUSeconds,
		HubReconcilesPerCache:         used.reconciles(hubController),
		SpokeReconcilesPerMemberCache: used.reconciles(spokeController) / float64(len(f.members())),
		HeapBytes:                     full, BytesPerMemberCache: f.bytesPerMemberCache(empty, full, n),
	}
	if err := f.measureDriftAmong(ctx, &row); err != nil {
		return row, err
	}
	return row, f.measureRestartAmong(ctx, &row)
}

// growthTrials of drift at each size; the stage drift has them all.
func (f *fleet) growthTrials() int { return max(f.trials/3, 4) }

// measureDriftAmong lets one more cache, which has pods, drift next to all others.
func (f *fleet) measureDriftAmong(ctx context.Context, row *growthRow) error {
	cache := cacheName("cache", 0)
	if _, err := f.create(ctx, cache); err != nil {
		return err
	}
	c, err := f.compareWithFloor(ctx, cache, f.growthTrials())
	if err != nil {
		return err
	}
	row.DriftP50Ms, row.FloorP50Ms = latencies(c.manager).P50, latencies(c.floor).P50
	row.DriftRatioP50 = c.ratios().DriftP50
	return f.remove(ctx, cache)
}

// quietReconciles without a reconcile count as the end of a start.
const quietReconciles = 5 * time.Second

func (f *fleet) measureRestartAmong(ctx context.Context, row *growthRow) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	logStep("restarting the manager with %d CacheClusters", row.Caches)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	_, started, err := f.manager.restart(ctx)
	if err != nil {
		return err
	}
	last, err := f.manager.awaitNoReconciles(ctx, quietReconciles)
	if err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.afterRestart(before)
	row.RestartQuietS = elapsed(started, last)
	row.RestartReconcilesPerCache = used.reconciles(spokeController) / float64(row.Caches*len(f.members()))
	row.RestartWrites = used.Hub.writes() + used.Members.writes()
	row.RestartCPUSecondsPerCache = used.CPUSeconds / float64(row.Caches)
	return nil
}

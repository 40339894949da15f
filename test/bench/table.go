package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one line of the table. The goal is an upper bound, or noGoal.
type figure struct {
	name  string
	value float64
	unit  string
	goal  float64
}

const noGoal = -1

// Goals that more than one table shows.
const (
	driftP50Goal            = 1.3
	hubWritesGoal           = 12
	bytesPerMemberCacheGoal = 20_000
)

func (r *report) figures() (all []figure) {
	add := func(name string, value float64, unit string, goal float64) {
		all = append(all, figure{name, value, unit, goal})
	}
	r.addDrift(add)
	r.addCreates(add)
	r.addBursts(add)
	r.addRest(add)
	r.addManager(add)
	return all
}

type addFigure func(name string, value float64, unit string, goal float64)

func (r *report) addDrift(add addFigure) {
	v := r.Ratios
	if v == nil {
		return
	}
	add("drift shown to correction shown, p50", r.DriftRepair.P50, "ms", noGoal)
	add("drift shown to correction shown, p90", r.DriftRepair.P90, "ms", noGoal)
	add("drift shown to correction shown, p99", r.DriftRepair.P99, "ms", noGoal)
	add("floor of the same run, p50", r.Floor.P50, "ms", noGoal)
	add("floor of the same run, p90", r.Floor.P90, "ms", noGoal)
	add("floor of the same run, p99", r.Floor.P99, "ms", noGoal)
	add("correction to floor, p50", v.DriftP50, "x", driftP50Goal)
	add("correction to floor, p90", v.DriftP90, "x", 1.8)
	add("hub writes per correction", r.Writes.HubPerRepair, "", 2)
	add("member writes per correction", r.Writes.MemberPerRepair, "", 1)
}

func (r *report) addCreates(add addFigure) {
	if v := r.ChildrenPresent; v != nil {
		add("create to StatefulSet in all members, p50", r.ApplyToPresent.P50, "ms", noGoal)
		add("create to every child in all members, p50", v.P50, "ms", noGoal)
		add("create to Ready on the hub, p50", r.ApplyToReady.P50, "ms", noGoal)
		add("members ready to Ready on the hub, p50", r.StatusLag.P50, "ms", 50)
		add("hub writes per create", r.Writes.HubPerCreate, "", hubWritesGoal)
	}
	if v := r.BareCreate; v != nil {
		add("bare client: create to StatefulSet in all members, p50", v.P50, "ms", noGoal)
		if r.ChildrenPresent != nil {
			add("create to bare client, p50", ratio(r.ApplyToPresent.P50, v.P50), "x", 1.5)
		}
	}
}

func (r *report) addBursts(add addFigure) {
	if v := r.CreateAll; v != nil {
		add(fmt.Sprintf("%d created at once: present in all members, p50", r.Caches), v.PresentP50/1000, "s", noGoal)
		add(fmt.Sprintf("%d created at once: present in all members, last", r.Caches), v.Present/1000, "s", noGoal)
		add(fmt.Sprintf("%d created at once: Ready, last", r.Caches), v.Ready/1000, "s", noGoal)
		add("hub writes per create, at once", r.Writes.HubPerCreateAll, "", hubWritesGoal)
		add("hub reconciles per cache, at once", v.HubReconciles, "", noGoal)
		add("spoke reconciles per MemberCache, at once", v.SpokeReconciles, "", noGoal)
	}
	if v := r.StatusLagAll; v != nil {
		add("members ready to Ready on the hub, at once, p50", v.P50/1000, "s", .5)
		add("members ready to Ready on the hub, at once, max", v.Max/1000, "s", noGoal)
		add("- of it until every MemberCache is Ready, p50", v.ReportedP50/1000, "s", noGoal)
		add("- of it until every MemberCache is Ready, max", v.ReportedMax/1000, "s", noGoal)
		add("- of it from there to the CacheCluster, p50", v.SummarizedP50/1000, "s", noGoal)
		add("- of it from there to the CacheCluster, max", v.SummarizedMax/1000, "s", noGoal)
	}
	if v := r.BareCreateAll; v != nil {
		add(fmt.Sprintf("bare client: %d at once, present in all members, p50", r.Caches), v.P50/1000, "s", noGoal)
		add(fmt.Sprintf("bare client: %d at once, present in all members, last", r.Caches), v.Last/1000, "s", noGoal)
		if all := r.CreateAll; all != nil {
			add("created at once to bare client, p50", ratio(all.PresentP50, v.P50), "x", noGoal)
			add("created at once to bare client, last", ratio(all.Present, v.Last), "x", 2)
		}
	}
}

func (r *report) addRest(add addFigure) {
	if _, measured := r.PerOperation["idle"]; measured {
		add("writes while idle", r.Writes.Idle, "", 0)
	}
	if v := r.Restart; v != nil {
		add("writes after a restart", r.Writes.AfterRestart, "", 0)
		add("spoke reconciles per MemberCache after a restart", v.SpokeReconciles, "", 1)
		add("SIGTERM to the last write", v.QuietS, "s", 3)
		add("SIGTERM to correction of drift without a manager", v.BackAtWork, "s", noGoal)
	}
	if v := r.HungMember; v != nil {
		add("create in other members during a hang, to healthy, p50", v.CreateRatio, "x", 1.1)
		add("drift in other members during a hang, to healthy, p50", v.DriftRatio, "x", 1.1)
		add("member hangs to Unknown on the hub", v.LossReportedS, "s", 15)
		add("member continues to pending work present", v.LandedS, "s", 5)
	}
}

func (r *report) addManager(add addFigure) {
	v := r.Manager
	if v.RSSBytes > 0 {
		add("resident memory of the manager", float64(v.RSSBytes)/1e6, "MB", 80)
		add("resident memory of the manager, peak", float64(v.RSSPeakBytes)/1e6, "MB", noGoal)
	}
	if v.HeapCaches > 0 {
		add("live heap of the manager without CacheClusters", v.EmptyHeapBytes/1e6, "MB", noGoal)
		add(fmt.Sprintf("live heap of the manager with %d CacheClusters", v.HeapCaches), v.HeapBytes/1e6, "MB", noGoal)
		add("live heap per MemberCache", v.BytesPerMemberCache/1e3, "kB", bytesPerMemberCacheGoal/1e3)
	}
	add("CPU time of the manager, whole run", v.CPUSeconds, "s", noGoal)
}

// print prints the figures with their goals, the growth and the requests of each
// operation.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%d members, %d CacheClusters, %d trials\n", r.Members, r.Caches, r.Trials)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURE\tFIGURE\tGOAL\t")
	for _, f := range r.figures() {
		goal, missed := describeGoal(f.goal, f.unit, f.value)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, number(f.value, f.unit), goal, missed)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
	r.printGrowth(w)
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REQUESTS PER\tWHERE\t")
	for _, name := range slices.Sorted(maps.Keys(r.PerOperation)) {
		o := r.PerOperation[name]
		fmt.Fprintf(table, "%s\thub\t%s\n\tmembers\t%s\n\tsent\t%s\n\treconciles\t%s\n\tCPU\t%s\n",
			name, o.Hub, o.Members, o.Manager, o.Reconciles, number(1000*o.CPUSeconds, "ms"))
	}
	_ = table.Flush()
}

func (r *report) printGrowth(w io.Writer) {
	if r.Growth == nil {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "COST AT SIZE\t")
	for _, row := range r.Growth.Rows {
		fmt.Fprintf(table, "%d\t", row.Caches)
	}
	fmt.Fprintln(table, "GOAL\t")
	for _, c := range growthCosts() {
		fmt.Fprintf(table, "%s\t", c.name)
		worst := 0.0
		for _, row := range r.Growth.Rows {
			worst = max(worst, c.value(row))
			fmt.Fprintf(table, "%s\t", number(c.value(row), c.unit))
		}
		goal, mark := describeGoal(c.goal, c.unit, worst)
		if slices.Contains(r.Growth.Faster, c.name) {
			mark = strings.TrimSpace(mark + " grows faster than the number of caches")
		}
		fmt.Fprintf(table, "%s\t%s\n", goal, mark)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
}

// describeGoal returns the text of a goal, and "missed" where the value exceeds it.
func describeGoal(goal float64, unit string, value float64) (text, missed string) {
	if goal == noGoal {
		return "", ""
	}
	if value > goal {
		missed = "missed"
	}
	return "at most " + number(goal, unit), missed
}

func number(v float64, unit string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".") + " " + unit)
}

func (c counts) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all = append(all, number(c[name], "")+" "+name)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

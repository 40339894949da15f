package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one line of the table. A goal is an upper bound, -1 where there is none.
type figure struct {
	name  string
	value float64
	unit  string
	goal  float64
}

const noGoal = -1

func (r *report) figures() (all []figure) {
	add := func(name string, value float64, unit string, goal float64) {
		all = append(all, figure{name, value, unit, goal})
	}
	if v := r.Ratios; v != nil {
		add("drift seen to repair seen, p50", r.DriftRepair.P50, "ms", noGoal)
		add("drift seen to repair seen, p90", r.DriftRepair.P90, "ms", noGoal)
		add("drift seen to repair seen, p99", r.DriftRepair.P99, "ms", noGoal)
		add("the floor of the same run, p50", r.Floor.P50, "ms", noGoal)
		add("the floor of the same run, p90", r.Floor.P90, "ms", noGoal)
		add("the floor of the same run, p99", r.Floor.P99, "ms", noGoal)
		add("repair to floor, p50", v.DriftP50, "x", 1.3)
		add("repair to floor, p90", v.DriftP90, "x", 1.8)
		add("hub writes per repair", r.Writes.HubPerRepair, "", 2)
		add("member writes per repair", r.Writes.MemberPerRepair, "", 1)
	}
	if v := r.ChildrenPresent; v != nil {
		add("create to StatefulSet in all members, p50", r.ApplyToPresent.P50, "ms", 60)
		add("create to every child in all members, p50", v.P50, "ms", noGoal)
		add("create to Ready on the hub, p50", r.ApplyToReady.P50, "ms", noGoal)
		add("members ready to hub says so, p50", r.StatusLag.P50, "ms", 50)
		add("hub writes per create", r.Writes.HubPerCreate, "", 12)
	}
	if v := r.BareCreate; v != nil {
		add("the same children without a hub, p50", v.P50, "ms", noGoal)
	}
	if v := r.CreateAll; v != nil {
		add(fmt.Sprintf("%d created at once, all present, p50", r.Caches), v.PresentP50/1000, "s", 2.5)
		add(fmt.Sprintf("%d created at once, all present, last", r.Caches), v.Present/1000, "s", 5)
		add(fmt.Sprintf("%d created at once, all Ready, last", r.Caches), v.Ready/1000, "s", noGoal)
		add("hub writes per create, all at once", r.Writes.HubPerCreateAll, "", 12)
	}
	if v := r.BareCreateAll; v != nil {
		add(fmt.Sprintf("%d at once without a hub, p50", r.Caches), v.P50/1000, "s", noGoal)
		add(fmt.Sprintf("%d at once without a hub, last", r.Caches), v.Last/1000, "s", noGoal)
	}
	if _, measured := r.PerOperation["idle"]; measured {
		add("writes when idle", r.Writes.Idle, "", 0)
	}
	if v := r.Restart; v != nil {
		add("writes after a restart", r.Writes.AfterRestart, "", 0)
		add("SIGTERM to the last write", v.QuietS, "s", 3)
		add("SIGTERM to drift of that time repaired", v.BackAtWork, "s", noGoal)
	}
	if v := r.HungMember; v != nil {
		add("create in the others while a member hangs, to healthy, p50", v.CreateRatio, "x", 1.1)
		add("drift in the others while a member hangs, to healthy, p50", v.DriftRatio, "x", 1.1)
		add("member hangs to Unknown on the hub", v.LossReportedS, "s", 15)
		add("member back to pending work landed", v.LandedS, "s", 5)
	}
	if r.Manager.RSSBytes > 0 {
		add("memory of the manager", float64(r.Manager.RSSBytes)/1e6, "MB", 80)
		add("memory of the manager at its peak", float64(r.Manager.RSSPeakBytes)/1e6, "MB", noGoal)
	}
	add("CPU time of the manager, whole run", r.Manager.CPUSeconds, "s", noGoal)
	return all
}

// print gives the figures beside the goals, and what each operation was made of.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%d members, %d CacheClusters, %d trials\n", r.Members, r.Caches, r.Trials)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURE\tFIGURE\tGOAL\t")
	for _, f := range r.figures() {
		goal, missed := "", ""
		if f.goal != noGoal {
			goal = "at most " + number(f.goal, f.unit)
			if f.value > f.goal {
				missed = "missed"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, number(f.value, f.unit), goal, missed)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REQUESTS PER\tWHERE\t")
	for _, name := range slices.Sorted(maps.Keys(r.PerOperation)) {
		o := r.PerOperation[name]
		fmt.Fprintf(table, "%s\thub\t%s\n\tmembers\t%s\n\tsent\t%s\n", name, o.Hub, o.Members, o.Manager)
	}
	_ = table.Flush()
}

func number(v float64, unit string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".") + " " + unit)
}

func (c counts) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		all = append(all, number(c[what], "")+" "+what)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

package main

import (
	"bytes"
	"context"
	"fmt"
)

// operation is the cost of one operation or of several.
type operation struct {
	// Hub and Members are the mutating requests that the API servers counted.
	Hub     counts `json:"hub"`
	Members counts `json:"members"`
	// Manager are all requests that the manager sent, reads and probes included.
	Manager counts `json:"manager"`
	// Reconciles are by controller and result: "hub success", "spoke requeue_after".
	Reconciles counts `json:"reconciles"`
	// CPUSeconds of the manager.
	CPUSeconds float64 `json:"cpuSeconds"`
}

func (o operation) subtract(before operation) operation {
	return operation{
		o.Hub.subtract(before.Hub), o.Members.subtract(before.Members), o.Manager.subtract(before.Manager),
		o.Reconciles.subtract(before.Reconciles), o.CPUSeconds - before.CPUSeconds,
	}
}

func (o operation) add(other operation) operation {
	return operation{
		o.Hub.add(other.Hub), o.Members.add(other.Members), o.Manager.add(other.Manager),
		o.Reconciles.add(other.Reconciles), o.CPUSeconds + other.CPUSeconds,
	}
}

func (o operation) divide(n int) operation {
	return operation{
		o.Hub.divide(n), o.Members.divide(n), o.Manager.divide(n),
		o.Reconciles.divide(n), o.CPUSeconds / float64(max(n, 1)),
	}
}

// reconciles returns the number of reconciles of a controller, whatever their result.
func (o operation) reconciles(controller string) float64 { return o.Reconciles.total(controller + " ") }

// snapshot reads the counters of every API server and of the manager.
func (f *fleet) snapshot(ctx context.Context) (operation, error) {
	o := operation{Members: counts{}}
	for _, c := range f.clusters {
		mutations, err := f.mutations(ctx, c)
		if err != nil {
			return o, err
		}
		if c == f.hub() {
			o.Hub = mutations
		} else {
			o.Members = o.Members.add(mutations)
		}
	}
	metrics, err := f.manager.scrape(ctx)
	if err != nil {
		return o, err
	}
	o.Manager, o.Reconciles = metrics.requests(f.hosts()), metrics.reconciles()
	o.CPUSeconds, err = f.manager.cpu()
	return o, err
}

// afterRestart returns the cost since before, where the manager was restarted in
// between and its own counters began at zero.
func (o operation) afterRestart(before operation) operation {
	used := o.subtract(before)
	used.Manager, used.Reconciles = o.Manager, o.Reconciles
	return used
}

// hosts maps each API server's address to "hub" or "members".
func (f *fleet) hosts() map[string]string {
	hosts := map[string]string{}
	for _, c := range f.clusters {
		hosts[c.host] = "members"
	}
	hosts[f.hub().host] = "hub"
	return hosts
}

// mutations returns the mutating requests that a cluster's API server has counted. On
// the hub of a lab, only the manager and bench write anything but leases.
func (f *fleet) mutations(ctx context.Context, c *cluster) (counts, error) {
	raw, err := c.raw.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	// An API server serves a megabyte of other metrics, so only these lines are parsed.
	all, err := parseMetrics(bytes.NewReader(filterLines(raw, "apiserver_request_total{")))
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	return countMutations(all["apiserver_request_total"], c != f.hub()), nil
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics by family name.
type metrics map[string]*dto.MetricFamily

func parse(text io.Reader) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
}

func (f *fleet) managerMetrics(ctx context.Context) (metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.manager.Metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of the hub manager: %w", err)
	}
	defer response.Body.Close()
	return parse(response.Body)
}

func (c *cluster) metrics(ctx context.Context) (metrics, error) {
	raw, err := c.raw.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	return parse(bytes.NewReader(raw))
}

func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// writes are requests that change something, by who counted them.
type writes map[string]float64

// countWrites sums up what the manager's clients sent to each API server, and what
// each API server got from anybody. Only the latter can tell leases apart.
func (f *fleet) countWrites(ctx context.Context) (writes, error) {
	count := writes{}
	own, err := f.managerMetrics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range f.clusters {
		c := &f.clusters[i]
		sent := "writes of the manager to " + c.name
		count[sent] = 0
		for _, m := range own["rest_client_requests_total"].GetMetric() {
			l := labels(m)
			if l["host"] == c.host && l["method"] != http.MethodGet {
				count[sent] += m.GetCounter().GetValue()
			}
		}
		if count[sent] == 0 {
			return nil, fmt.Errorf("the hub manager counts no write to %s at %s, where it made some: its metrics name the host otherwise", c.name, c.host)
		}
		server, err := c.metrics(ctx)
		if err != nil {
			return nil, err
		}
		got, leases := "writes of anybody at "+c.name, "leases written by anybody at "+c.name
		count[got], count[leases] = 0, 0
		for _, m := range server["apiserver_request_total"].GetMetric() {
			l := labels(m)
			switch {
			case !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, l["verb"]) || l["dry_run"] != "":
			case l["resource"] == "leases":
				count[leases] += m.GetCounter().GetValue()
			default:
				count[got] += m.GetCounter().GetValue()
			}
		}
	}
	return count, nil
}

func (f *fleet) measureIdle(ctx context.Context, o options, r *report) error {
	for i := range f.members() {
		if err := f.members()[i].atRest(ctx); err != nil {
			return err
		}
	}
	// What was measured before has its last echo in events and status.
	const echo = 15 * time.Second
	step("watching for writes for %s", o.idle)
	if err := pause(ctx, echo); err != nil {
		return err
	}
	before, err := f.countWrites(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, o.idle); err != nil {
		return err
	}
	after, err := f.countWrites(ctx)
	if err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(after)) {
		r.add(fmt.Sprintf("%s in %s", what, o.idle), requests, after[what]-before[what], 0)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// measureManager reads what the manager says of all that went before.
func (f *fleet) measureManager(ctx context.Context, _ options, r *report) error {
	own, err := f.managerMetrics(ctx)
	if err != nil {
		return err
	}
	for _, m := range own["controller_runtime_reconcile_time_seconds"].GetMetric() {
		if h := m.GetHistogram(); h.GetSampleCount() > 0 {
			name := labels(m)["controller"]
			r.add("reconcile of "+name+", median", milliseconds, 1000*histogramQuantile(h, .5), 2000)
			r.add("reconcile of "+name+", p99", milliseconds, 1000*histogramQuantile(h, .99), 0)
		}
	}
	now, peak, err := resident(f.manager.PID)
	if err != nil {
		return err
	}
	r.add("hub manager's memory", megabytes, now, 120)
	r.add("hub manager's memory at its peak", megabytes, peak, 0)
	return nil
}

// histogramQuantile interpolates within a bucket, as Prometheus does; in the
// last one, which has no end, it gives its beginning.
func histogramQuantile(h *dto.Histogram, q float64) float64 {
	rank := q * float64(h.GetSampleCount())
	from, below := 0.0, 0.0
	for _, b := range h.GetBucket() {
		count := float64(b.GetCumulativeCount())
		if count >= rank && count > below {
			if math.IsInf(b.GetUpperBound(), 1) {
				return from
			}
			return from + (b.GetUpperBound()-from)*(rank-below)/(count-below)
		}
		from, below = b.GetUpperBound(), count
	}
	return from
}

// resident memory of a process, now and at its peak, in MB (10^6 bytes).
func resident(pid int) (now, peak float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range bytes.Split(status, []byte("\n")) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %f kB", &kib); n == 1 {
			now = kib * 1024 / 1e6
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %f kB", &kib); n == 1 {
			peak = kib * 1024 / 1e6
		}
	}
	return now, peak, nil
}

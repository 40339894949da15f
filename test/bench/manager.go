package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// manager is the hub manager's process, across its restarts.
type manager struct {
	lab.Manager
	dir string
	// used is the CPU time of the processes that have exited, in seconds.
	used float64
	// extra arguments of every process that restart starts, after those of the lab.
	extra []string
}

// plainHTTP asks for answers without compression, which would cost the manager CPU
// time and memory of its own.
var plainHTTP = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// metrics are the metric families of the manager by name.
type metrics map[string]*dto.MetricFamily

func (m *manager) scrape(ctx context.Context) (metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := plainHTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of the hub manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	families, err := parseMetrics(response.Body)
	if err != nil {
		return nil, fmt.Errorf("metrics of the hub manager: %w", err)
	}
	return families, nil
}

// requests returns the requests that the manager sent, by method and by what hosts
// calls the host.
func (m metrics) requests(hosts map[string]string) counts {
	count := counts{}
	for _, metric := range m["rest_client_requests_total"].GetMetric() {
		l := labelsOf(metric)
		if where, known := hosts[l["host"]]; known {
			count[l["method"]+" "+where] += valueOf(metric)
		}
	}
	return count
}

// Names of the controllers in the metrics. All members share one name.
const (
	hubController   = "hub"
	spokeController = "spoke"
)

// reconciles returns the number of reconciles, by controller and result.
func (m metrics) reconciles() counts {
	count := counts{}
	for _, metric := range m["controller_runtime_reconcile_total"].GetMetric() {
		l := labelsOf(metric)
		if n := valueOf(metric); n > 0 && (l["controller"] == hubController || l["controller"] == spokeController) {
			count[l["controller"]+" "+l["result"]] += n
		}
	}
	return count
}

// gauge returns the value of a metric without labels.
func (m metrics) gauge(name string) (float64, error) {
	samples := m[name].GetMetric()
	if len(samples) != 1 {
		return 0, fmt.Errorf("metrics of the hub manager: %s: %d samples, want one", name, len(samples))
	}
	return valueOf(samples[0]), nil
}

// resident returns the resident memory in bytes, now and at its peak.
func (m *manager) resident() (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID))
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(status) {
		var kib int64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kib); n == 1 {
			now = kib << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	return now, peak, nil
}

// cpu returns the CPU seconds of all processes of the manager so far.
func (m *manager) cpu() (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name, which may contain spaces and parentheses.
	// User and system time are fields 14 and 15.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux platform of Go
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return m.used + (user+system)/ticksPerSecond, err
}

// restart stops the manager with SIGTERM, runs meanwhile, starts the manager with the
// lab's arguments and waits until it is ready.
func (m *manager) restart(ctx context.Context, meanwhile ...func() error) (stopped, started time.Time, err error) {
	arguments, stopped, err := m.terminate(ctx)
	if err != nil {
		return stopped, started, err
	}
	for _, do := range meanwhile {
		if err := do(); err != nil {
			return stopped, started, err
		}
	}
	for _, argument := range m.extra {
		if !slices.Contains(arguments, argument) {
			arguments = append(arguments, argument)
		}
	}
	started = time.Now()
	next, err := process.Start(filepath.Join(m.dir, "hub.log"), m.Binary, arguments...)
	if err != nil {
		return stopped, started, err
	}
	m.PID = next.PID
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-next.Exited:
			return false, fmt.Errorf("the hub manager exited; see its log, %s", filepath.Join(m.dir, "hub.log"))
		default:
			return m.ready(ctx), nil
		}
	})
	return stopped, started, err
}

// terminate stops the manager and returns its arguments and the time of the SIGTERM.
func (m *manager) terminate(ctx context.Context) (arguments []string, stopped time.Time, err error) {
	name := filepath.Base(m.Binary)
	found, err := process.Find(m.dir, name)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d processes of the hub manager run, want one", len(found))
	}
	if err != nil {
		return nil, stopped, err
	}
	if m.used, err = m.cpu(); err != nil {
		return nil, stopped, err
	}
	stopped = time.Now()
	if err := syscall.Kill(found[0].PID, syscall.SIGTERM); err != nil {
		return nil, stopped, err
	}
	err = wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		running, err := process.Find(m.dir, name)
		return len(running) == 0, err
	})
	if err != nil {
		err = fmt.Errorf("the hub manager does not exit: %w", err)
	}
	return found[0].Args[1:], stopped, err
}

func (m *manager) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// awaitNoReconciles waits until no reconcile has ended for the duration quiet, and
// returns the time of the last one.
func (m *manager) awaitNoReconciles(ctx context.Context, quiet time.Duration) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last = time.Now()
	for before := -1.0; ; {
		families, err := m.scrape(ctx)
		if err != nil {
			return last, err
		}
		now := time.Now()
		if n := families.reconciles().total(""); n != before {
			before, last = n, now
		}
		if now.Sub(last) >= quiet {
			return last, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return last, errors.Join(fmt.Errorf("waiting for %s without a reconcile", quiet), err)
		}
	}
}

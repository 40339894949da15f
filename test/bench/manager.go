package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// manager is the hub manager's process, across its restarts.
type manager struct {
	lab.Manager
	dir string
	// used is the CPU time of the processes that ended.
	used float64
}

// requests that the manager sent so far, by cluster and method. The probes of the
// members are among them, dry runs too.
func (m *manager) requests(ctx context.Context, hosts map[string]string) (counts, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of the hub manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := parse(response.Body)
	if err != nil {
		return nil, err
	}
	count := counts{}
	for _, metric := range all["rest_client_requests_total"].GetMetric() {
		l := labels(metric)
		if where, known := hosts[l["host"]]; known {
			count[l["method"]+" "+where] += value(metric)
		}
	}
	return count, nil
}

// resident memory in bytes, now and at its peak.
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

// cpu seconds that the manager has used in all its lives.
func (m *manager) cpu() (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name and may hold anything but ends with the
	// last parenthesis; user and system time are fields 14 and 15.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go knows
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return m.used + (user+system)/ticksPerSecond, err
}

// restart ends the manager as a Deployment would and starts it again with the
// arguments that the lab gave it; meanwhile runs in between. It returns when the
// manager is ready.
func (m *manager) restart(ctx context.Context, meanwhile ...func() error) (ended, started time.Time, err error) {
	found, err := process.Find(m.dir, filepath.Base(m.Binary))
	if err != nil || len(found) != 1 {
		return ended, started, fmt.Errorf("the hub manager runs %d times: %w", len(found), err)
	}
	if m.used, err = m.cpu(); err != nil {
		return ended, started, err
	}
	old := found[0]
	ended = time.Now()
	if err := syscall.Kill(old.PID, syscall.SIGTERM); err != nil {
		return ended, started, err
	}
	err = wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		left, err := process.Find(m.dir, filepath.Base(m.Binary))
		return len(left) == 0, err
	})
	if err != nil {
		return ended, started, fmt.Errorf("the hub manager does not end: %w", err)
	}
	for _, do := range meanwhile {
		if err := do(); err != nil {
			return ended, started, err
		}
	}
	started = time.Now()
	next, err := process.Start(filepath.Join(m.dir, "hub.log"), m.Binary, old.Args[1:]...)
	if err != nil {
		return ended, started, err
	}
	m.PID = next.PID
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-next.Exited:
			return false, fmt.Errorf("the hub manager ended: see its log, %s", filepath.Join(m.dir, "hub.log"))
		default:
			return m.ready(ctx), nil
		}
	})
	return ended, started, err
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

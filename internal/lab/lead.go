package lab

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// leaseTimeout limits the wait for leadership. The lease of a killed manager expires after
// 15 s; the rest is for the next attempt to acquire it.
const leaseTimeout = 25 * time.Second

// waitForLeadership waits until the manager is the leader. A manager that was stopped has
// released its lease; the lease of one that was killed must expire. Another manager that
// stays the leader is not an error.
func waitForLeadership(ctx context.Context, m Manager, report Report) error {
	notice := time.NewTimer(time.Second)
	defer notice.Stop()
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, leaseTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-notice.C:
			report("waiting for the lease of a killed hub manager to expire")
		default:
		}
		return isLeader(ctx, m.Metrics), nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		report("another hub manager is the leader; this one is on standby")
		return nil
	}
	return err
}

// isLeader reads the leader election metric of the manager at the address.
func isLeader(ctx context.Context, address string) bool {
	return get(ctx, "http://"+address+"/metrics", parseLeader)
}

// isReady reports whether the manager at the address answers its readiness probe.
func isReady(ctx context.Context, address string) bool {
	return get(ctx, "http://"+address+"/readyz", func(io.Reader) bool { return true })
}

// get reports whether the address answers 200 OK with a body that accept accepts.
func get(ctx context.Context, address string, accept func(body io.Reader) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK && accept(response.Body)
}

// parseLeader reports whether the metrics of client-go name their process as the leader.
func parseLeader(metrics io.Reader) bool {
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "leader_election_master_status{") {
			return strings.HasSuffix(lines.Text(), " 1")
		}
	}
	return false
}

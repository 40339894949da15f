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

// leaseLasts is how long the lease of a manager that was killed keeps another from
// taking over, with room for the try after that.
const leaseLasts = 25 * time.Second

// awaitLead waits until the manager works: after one that was stopped at once, after
// one that was killed when its lease has run out. Another manager that leads, which
// somebody started beside it, is no error.
func awaitLead(ctx context.Context, m Manager, report Report) error {
	say := time.NewTimer(time.Second)
	defer say.Stop()
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, leaseLasts, true, func(ctx context.Context) (bool, error) {
		select {
		case <-say.C:
			report("waiting for the lease of an earlier hub manager, which was killed, to run out")
		default:
		}
		return leads(ctx, m.Metrics), nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		report("another hub manager leads; this one stands by")
		return nil
	}
	return err
}

// leads reads the manager's own metric, which client-go keeps.
func leads(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return leadsIn(response.Body)
}

func leadsIn(metrics io.Reader) bool {
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "leader_election_master_status{") {
			return strings.HasSuffix(lines.Text(), " 1")
		}
	}
	return false
}

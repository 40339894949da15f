package embedded

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

//go:embed stages.yaml
var stages []byte

// stopTimeout is the grace period of programs that Create restarts.
const stopTimeout = 10 * time.Second

// Failures that Create retries once, after it has stopped every program of the cluster.
var (
	errNotReady = errors.New("not ready in time")
	errPortLost = errors.New("another program uses its port")
)

// create completes the cluster, whatever an earlier call has created.
func create(ctx context.Context, cluster string, f files, report lab.Report) error {
	chosen, err := prepareFiles(ctx, cluster, f, report)
	if err != nil {
		return err
	}
	start := starter{files: f, ports: chosen}
	c, err := newClient(f)
	if err != nil {
		return err
	}
	if err := start.programs(ctx, etcd, apiServer); err != nil {
		return err
	}
	if err := start.waitFor(ctx, report, "waiting for the API server", func(ctx context.Context) (bool, error) {
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}); err != nil {
		return err
	}
	if err := start.deleteNodeLeases(ctx, c); err != nil {
		return err
	}
	if err := start.programs(ctx, controllerManager, scheduler, kwok); err != nil {
		return err
	}
	if err := ensureNodes(ctx, c); err != nil {
		return err
	}
	return start.waitFor(ctx, report, "waiting for nodes and controllers", func(ctx context.Context) (bool, error) {
		return lab.AcceptsPods(ctx, c, nodeCount), nil
	})
}

// prepareFiles writes everything that the programs read, and returns the ports of the
// cluster.
func prepareFiles(ctx context.Context, cluster string, f files, report lab.Report) (ports, error) {
	for _, dir := range []string{f.dir, f.path("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return ports{}, err
		}
	}
	if err := ensurePKI(f); err != nil {
		return ports{}, err
	}
	if err := lab.WriteFile(f.stages(), stages); err != nil {
		return ports{}, err
	}
	chosen, err := ensurePorts(ctx, f, report)
	if err != nil {
		return ports{}, err
	}
	config, err := kubeconfig(f, fmt.Sprintf("https://127.0.0.1:%d", chosen.APIServer), cluster)
	if err != nil {
		return ports{}, err
	}
	return chosen, lab.WriteFile(f.kubeconfig(), config)
}

// ensurePorts returns the ports of an earlier call unless another program uses one of
// them, else new ports. It stops processes that run with outdated arguments.
func ensurePorts(ctx context.Context, f files, report lab.Report) (ports, error) {
	saved, exists, err := loadPorts(f)
	if err != nil {
		return ports{}, err
	}
	if exists {
		current, outdated, err := running(f, saved)
		if err != nil {
			return ports{}, err
		}
		// A fault may have paused them.
		if err := process.Resume(slices.Concat(current, outdated)...); err != nil {
			return ports{}, err
		}
		if len(outdated) > 0 {
			if err := process.Stop(ctx, stopTimeout, f.dir, programs...); err != nil {
				return ports{}, err
			}
			current = nil
		}
		port, lost := lostPort(saved, current)
		if !lost {
			return saved, nil
		}
		report(fmt.Sprintf("another program uses port %d: choosing other ports", port))
	}
	if err := process.Stop(ctx, stopTimeout, f.dir, programs...); err != nil {
		return ports{}, err
	}
	fresh, err := choosePorts()
	if err != nil {
		return ports{}, err
	}
	return fresh, savePorts(f, fresh)
}

// lostPort returns a port that is in use although its program does not run.
func lostPort(saved ports, current []process.Process) (port int, lost bool) {
	for _, program := range programs {
		if runs(current, program) {
			continue
		}
		if port, used := saved.inUse(program); used {
			return port, true
		}
	}
	return 0, false
}

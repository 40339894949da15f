package embedded

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// Stop kills the cluster's API server, so that connections to it are refused. Its
// etcd and its controllers go on; Create starts it again.
func (p *provider) Stop(ctx context.Context, cluster string) error {
	f := p.files(cluster)
	if err := process.Stop(ctx, 0, f.dir, apiServer); err != nil {
		return fmt.Errorf("stop the API server of %s: %w", cluster, err)
	}
	chosen, made, err := loadPorts(f)
	if err != nil || !made {
		return err
	}
	// The kernel closes what a process had open after it has taken it off the list;
	// a Create just then would take the port for somebody else's and change it.
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		_, taken := chosen.taken(apiServer)
		return !taken, nil
	})
}

// Freeze stops the API server with SIGSTOP: its connections stay open.
func (p *provider) Freeze(_ context.Context, cluster string) error {
	found, err := process.Find(p.files(cluster).dir, apiServer)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the API server of %s does not run: reconcile-lab up starts it", cluster)
	}
	return process.Freeze(found...)
}

// Thaw undoes Freeze.
func (p *provider) Thaw(_ context.Context, cluster string) error {
	found, err := process.Find(p.files(cluster).dir, apiServer)
	if err != nil {
		return err
	}
	process.Continue(found...)
	return nil
}

// HostAddress is loopback: the hub manager is a process of this machine.
func (*provider) HostAddress(context.Context) (string, error) { return "127.0.0.1", nil }

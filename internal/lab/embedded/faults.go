package embedded

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// Stop kills the API server of the cluster, so that connections to it are refused. Its
// etcd and its controllers keep running; Create starts the API server again.
func (p *provider) Stop(ctx context.Context, cluster string) error {
	f := p.files(cluster)
	if err := process.Stop(ctx, 0, f.dir, apiServer); err != nil {
		return fmt.Errorf("stop the API server of %s: %w", cluster, err)
	}
	saved, exists, err := loadPorts(f)
	if err != nil || !exists {
		return err
	}
	// The kernel closes the sockets of a process after it has removed it from the process
	// list. A Create in between would find the port in use and choose another.
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		_, used := saved.inUse(apiServer)
		return !used, nil
	})
}

// Pause stops the API server with SIGSTOP. Its connections stay open.
func (p *provider) Pause(_ context.Context, cluster string) error {
	found, err := process.Find(p.files(cluster).dir, apiServer)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the API server of %s does not run; start it with reconcile-lab up", cluster)
	}
	return process.Pause(found...)
}

// Resume undoes Pause.
func (p *provider) Resume(_ context.Context, cluster string) error {
	found, err := process.Find(p.files(cluster).dir, apiServer)
	if err != nil {
		return err
	}
	return process.Resume(found...)
}

// HostAddress returns the loopback address, since the hub manager is a process of this
// machine.
func (*provider) HostAddress(context.Context) (string, error) { return "127.0.0.1", nil }

package manager

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is what managers of one hub contend for.
const leaseName = "hub.cache.reconcile-lab.io"

// renewDeadline is how long a leader tries to renew the lease before it stops; a
// request may take half of it, so that a single one that hangs does not cost the
// lead.
const renewDeadline = 10 * time.Second

// lease is the lock of leader election. Controller-runtime's own writes an event
// at each change of leader; with this one, a restart with nothing to do writes
// nothing but the lease.
func lease(hub *rest.Config, o Options) (resourcelock.Interface, error) {
	if !o.Elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(hub)
	config.UserAgent += "/leader-election"
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.ElectionNamespace, leaseName, identity, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("set up the lease: %w", err)
	}
	return lock, nil
}

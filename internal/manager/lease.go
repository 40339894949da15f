package manager

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the Lease that the managers of one hub compete for.
const leaseName = "hub.cache.reconcile-lab.io"

// renewDeadline is how long a leader tries to renew the Lease before it stops. A
// request may take half of it, so that one request that hangs does not end the lead.
const renewDeadline = 10 * time.Second

// newLeaseLock returns the lock of the leader election, or nil without one. The lock
// of controller-runtime writes an event at each change of leader; with this one, a
// restart with nothing to do writes nothing but the Lease.
func newLeaseLock(hub *rest.Config, o Options) (resourcelock.Interface, error) {
	if !o.LeaderElection {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("identify this manager: %w", err)
	}
	config := rest.CopyConfig(hub)
	config.UserAgent += "/leader-election"
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.LeaderElectionNamespace, leaseName, identity, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("create the Lease lock: %w", err)
	}
	return lock, nil
}

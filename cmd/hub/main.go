// Command hub is the manager of the hub cluster. It places CacheClusters in member
// clusters, applies their children there and reports the result in the status.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
)

// Requests to the API server of the hub; its priority and fairness decides beyond them.
const (
	hubQPS   = 200
	hubBurst = 400
)

func main() {
	var o manager.Options
	flag.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "Address of /metrics and /debug. 0 turns it off.")
	flag.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz. 0 turns it off.")
	flag.StringVar(&o.PprofAddress, "pprof-bind-address", "0", "Address of /debug/pprof. Profiles can contain secrets: use a loopback address. 0 turns it off.")
	flag.StringVar(&o.InventoryNamespace, "inventory-namespace", v1alpha1.InventoryNamespace, "Namespace of the ClusterProfiles and of the credentials of the members.")
	flag.BoolVar(&o.LeaderElection, "leader-elect", true, "Work only while holding the Lease, so that a second manager can stand by.")
	flag.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", v1alpha1.InventoryNamespace, "Namespace of the Lease.")
	flag.DurationVar(&o.ShutdownTimeout, "graceful-shutdown-timeout", 20*time.Second, "How long running reconciles may continue after SIGTERM.")
	zapOptions := zap.Options{TimeEncoder: zapcore.ISO8601TimeEncoder}
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()

	logger := zap.New(zap.UseFlagOptions(&zapOptions))
	ctrl.SetLogger(logger)
	// client-go logs through klog: without this its lines are plain text between JSON.
	klog.SetLoggerWithOptions(logger.WithName("klog"), klog.ContextualLogger(true))

	if err := run(o); err != nil {
		logger.Error(err, "The hub manager failed")
		os.Exit(1)
	}
}

func run(o manager.Options) error {
	limitMemory()
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the kubeconfig of the hub: %w", err)
	}
	config.QPS, config.Burst = hubQPS, hubBurst
	config.UserAgent = "reconcile-lab-hub"
	hub, err := manager.New(config, o)
	if err != nil {
		return err
	}
	return hub.Start(ctrl.SetupSignalHandler())
}

// limitMemory sets GOMEMLIMIT to 90 % of the memory limit of the cgroup, unless the
// environment sets it. Near the limit the collector then works harder, where the kernel
// would otherwise kill the process.
func limitMemory() {
	limit, err := memlimit.Set()
	if err != nil {
		// As on a machine without cgroups: the manager runs without a limit.
		ctrl.Log.V(1).Info("No memory limit found", "reason", err.Error())
		return
	}
	ctrl.Log.Info("Set the memory limit", "bytes", limit)
}

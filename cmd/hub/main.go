// Command hub is the manager of the hub cluster: it places CacheClusters, applies
// them in the members and reports what it sees there.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
)

func main() {
	var o manager.Options
	flag.StringVar(&o.Metrics, "metrics-bind-address", ":8080", "Address of the metrics endpoint; 0 turns it off.")
	flag.StringVar(&o.Probes, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 turns them off.")
	flag.StringVar(&o.Profiles, "pprof-bind-address", "0", "Address of the profiles, /debug/pprof. They can hold secrets: bind to loopback. 0 turns them off.")
	flag.StringVar(&o.Inventory, "inventory-namespace", v1alpha1.InventoryNamespace, "Namespace of the ClusterProfiles and of the members' credentials.")
	flag.BoolVar(&o.Elect, "leader-elect", true, "Work only while holding the lease, so that a second manager stands by.")
	flag.StringVar(&o.ElectionNamespace, "leader-election-namespace", v1alpha1.InventoryNamespace, "Namespace of the lease.")
	flag.DurationVar(&o.Shutdown, "graceful-shutdown-timeout", 20*time.Second, "How long running reconciles may finish after SIGTERM.")
	zapOptions := zap.Options{TimeEncoder: zapcore.ISO8601TimeEncoder}
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&zapOptions)))

	if err := run(o); err != nil {
		ctrl.Log.Error(err, "the hub manager stops")
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

func run(o manager.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "reconcile-lab-hub"
	hub, err := manager.New(config, o)
	if err != nil {
		return err
	}
	return hub.Start(ctrl.SetupSignalHandler())
}

// Command hub is the manager of the hub cluster: it places CacheClusters, applies
// them in the members and reports what it sees there.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	spokecontroller "github.com/reconcile-lab/reconcile-lab/spoke/controller"
)

type flags struct {
	metrics, probes, inventory, electionNamespace string
	elect                                         bool
	shutdown                                      time.Duration
}

func main() {
	var f flags
	flag.StringVar(&f.metrics, "metrics-bind-address", ":8080", "Address of the metrics endpoint; 0 turns it off.")
	flag.StringVar(&f.probes, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 turns them off.")
	flag.StringVar(&f.inventory, "inventory-namespace", v1alpha1.InventoryNamespace, "Namespace of the ClusterProfiles and of the members' credentials.")
	flag.BoolVar(&f.elect, "leader-elect", true, "Work only while holding the lease, so that a second manager stands by.")
	flag.StringVar(&f.electionNamespace, "leader-election-namespace", v1alpha1.InventoryNamespace, "Namespace of the lease.")
	flag.DurationVar(&f.shutdown, "graceful-shutdown-timeout", 20*time.Second, "How long running reconciles may finish after SIGTERM.")
	zapOptions := zap.Options{TimeEncoder: zapcore.ISO8601TimeEncoder}
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&zapOptions)))

	if err := run(f); err != nil {
		ctrl.Log.Error(err, "the hub manager stops")
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

func run(f flags) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "reconcile-lab-hub"
	manager, err := build(f, config)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func hubScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{spokecontroller.AddHubTypes, clusterinventory.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

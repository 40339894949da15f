package harness

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
)

// Manager is one life of the hub manager, in the process of the test.
type Manager struct {
	mcmanager.Manager
	cancel context.CancelFunc
	done   chan error
}

// StartManager starts a manager as cmd/hub would, without leader election, metrics
// and probes unless change asks for them.
func StartManager(config *rest.Config, change func(*manager.Options)) (*Manager, error) {
	o := manager.Options{MetricsAddress: "0", ProbeAddress: "0", InventoryNamespace: v1alpha1.InventoryNamespace, ShutdownTimeout: 20 * time.Second, SharedProcess: true}
	if change != nil {
		change(&o)
	}
	mgr, err := manager.New(config, o)
	if err != nil {
		return nil, err
	}
	m := &Manager{Manager: mgr, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() { m.done <- mgr.Start(ctx) }()
	return m, nil
}

// Cancel asks it to end, as SIGTERM does.
func (m *Manager) Cancel() { m.cancel() }

// Done returns what Start returned, once.
func (m *Manager) Done() <-chan error { return m.done }

// Stop ends it as SIGTERM does, and waits for that.
func (m *Manager) Stop() error {
	m.cancel()
	select {
	case err := <-m.done:
		return err
	case <-time.After(time.Minute):
		return errors.New("the manager did not stop within a minute")
	}
}

// Package integration tests the hub manager, as cmd/hub wires it, against real API
// servers: one hub and two members, shared by all tests of the package. Each test
// has a namespace of its own. Tests that are not parallel run first and alone.
package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/cmd/hub/manager"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

const crds = "../../deploy/crd"

// fleet is a hub with its manager and two members.
type fleet struct {
	*harness.Fleet

	stopManager context.CancelFunc
	managerDone chan error
}

const one, two = "member-1", "member-2"

var lab *fleet

func TestMain(m *testing.M) {
	harness.Log(os.Getenv("RECONCILE_LAB_TEST_LOG") != "")
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	servers, err := harness.StartFleet(ctx, crds, nil, one, two)
	lab = &fleet{Fleet: servers}
	defer func() { err = errors.Join(err, lab.Stop()) }()
	if err != nil {
		return 1, err
	}
	for name, member := range lab.Members {
		o := membership.Options{Labels: map[string]string{"tier": "lab", "name": name}}
		if err := membership.Join(ctx, lab.Hub.Config, member.Config, name, o); err != nil {
			return 1, err
		}
	}
	if err := lab.startManager(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, lab.stopManagerAndWait()
}

// startManager starts the manager as cmd/hub would, without leader election.
func (f *fleet) startManager(ctx context.Context) error {
	mgr, err := manager.New(f.Hub.Config, manager.Options{Metrics: "0", Probes: "0", Inventory: v1alpha1.InventoryNamespace,
		Shutdown: 20 * time.Second, SharedProcess: true,
		Transport: func(_ string, next http.RoundTripper) http.RoundTripper { return interceptor{next} }})
	if err != nil {
		return err
	}
	ctx, f.stopManager = context.WithCancel(ctx)
	f.managerDone = make(chan error, 1)
	go func() { f.managerDone <- mgr.Start(ctx) }()
	return nil
}

func (f *fleet) stopManagerAndWait() error {
	f.stopManager()
	if err := <-f.managerDone; err != nil {
		return fmt.Errorf("the manager did not stop well: %w", err)
	}
	return nil
}

func (f *fleet) restartManager(t *testing.T) {
	t.Helper()
	if err := f.stopManagerAndWait(); err != nil {
		t.Fatal(err)
	}
	if err := f.startManager(context.Background()); err != nil {
		t.Fatal(err)
	}
}

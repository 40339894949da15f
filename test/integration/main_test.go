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
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/cmd/hub/manager"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

const crds = "../../deploy/crd"

// fleet is a hub with its manager and two members.
type fleet struct {
	hub     *harness.Server
	members map[string]*member

	stopManager context.CancelFunc
	managerDone chan error
}

// member is a member's API server and what stands in for its controllers.
type member struct {
	*harness.Server
	standIn *harness.StandIn
}

const one, two = "member-1", "member-2"

var lab *fleet

func TestMain(m *testing.M) {
	if os.Getenv("RECONCILE_LAB_TEST_LOG") != "" {
		log.SetLogger(zap.New(zap.UseDevMode(true)))
	} else {
		log.SetLogger(zap.New(zap.WriteTo(discard{})))
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	lab = &fleet{members: map[string]*member{}}
	defer func() { err = errors.Join(err, lab.stop()) }()
	if err := lab.start(ctx); err != nil {
		return 1, err
	}
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { lab.members[one].standIn.Run(ctx) })
	working.Go(func() { lab.members[two].standIn.Run(ctx) })
	defer cancel()
	for name, member := range lab.members {
		o := membership.Options{Labels: map[string]string{"tier": "lab", "name": name}}
		if err := membership.Join(ctx, lab.hub.Config, member.Config, name, o); err != nil {
			return 1, err
		}
	}
	if err := lab.startManager(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, lab.stopManagerAndWait()
}

// start starts the API servers at the same time.
func (f *fleet) start(ctx context.Context) error {
	var (
		mu      sync.Mutex
		failure error
		working sync.WaitGroup
	)
	begin := func(keep func(*harness.Server), crds ...string) {
		working.Go(func() {
			s, err := harness.Start(ctx, crds...)
			mu.Lock()
			defer mu.Unlock()
			failure = errors.Join(failure, err)
			if err == nil {
				keep(s)
			}
		})
	}
	begin(func(s *harness.Server) { f.hub = s }, crds)
	for _, name := range []string{one, two} {
		begin(func(s *harness.Server) { f.members[name] = &member{s, harness.NewStandIn(s)} })
	}
	working.Wait()
	return failure
}

func (f *fleet) stop() error {
	var err error
	if f.hub != nil {
		err = f.hub.Stop()
	}
	for _, m := range f.members {
		err = errors.Join(err, m.Stop())
	}
	return err
}

// startManager starts the manager as cmd/hub would, without leader election.
func (f *fleet) startManager(ctx context.Context) error {
	mgr, err := manager.New(f.hub.Config, manager.Options{Metrics: "0", Probes: "0", Inventory: v1alpha1.InventoryNamespace,
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

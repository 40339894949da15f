//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/cmd/hub/manager"
	"github.com/reconcile-lab/reconcile-lab/hub/inventory"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

const crds = "../../deploy/crd"

// The members.
const one, two, three = "member-1", "member-2", "member-3"

// startup is how long pods take to become ready: long enough to be called ready
// too early.
const startup = 40 * time.Millisecond

// fleet is a hub, its members, who watches them, and the manager that works now.
type fleet struct {
	hub      *harness.Server
	members  map[string]*harness.Server
	standIns map[string]*harness.StandIn
	witness  *witness
	board    *Board

	mu      sync.Mutex
	manager *hubManager
	spaces  int
	working sync.WaitGroup
	cancel  context.CancelFunc
}

// startFleet starts the API servers at the same time, and no manager.
func startFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{members: map[string]*harness.Server{}, standIns: map[string]*harness.StandIn{}, board: &Board{}}
	var (
		mu       sync.Mutex
		failure  error
		starting sync.WaitGroup
	)
	begin := func(keep func(*harness.Server), crds ...string) {
		starting.Go(func() {
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
	for _, name := range []string{one, two, three} {
		begin(func(s *harness.Server) { f.members[name] = s })
	}
	starting.Wait()
	if failure != nil {
		return f, failure
	}
	ctx, f.cancel = context.WithCancel(ctx)
	for name, s := range f.members {
		f.standIns[name] = harness.NewStandIn(s)
		f.standIns[name].Delay = startup
		f.working.Go(func() { f.standIns[name].Run(ctx) })
		if err := membership.Join(ctx, f.hub.Config, s.Config, name, membership.Options{Labels: map[string]string{"name": name}}); err != nil {
			return f, err
		}
	}
	var err error
	f.witness, err = newWitness(ctx, f)
	return f, err
}

func (f *fleet) stop() error {
	if f.manager != nil {
		f.manager.kill()
	}
	if f.cancel != nil {
		f.cancel()
	}
	f.working.Wait()
	var err error
	for _, s := range append(slices.Collect(maps.Values(f.members)), f.hub) {
		if s != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	return err
}

// server is the client of the hub or of a member.
func (f *fleet) server(name string) client.Client {
	if name == hub {
		return f.hub.Client
	}
	return f.members[name].Client
}

const hub = "hub"

// space is a new namespace's name, of the same length each time.
func (f *fleet) space() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spaces++
	return fmt.Sprintf("space-%06d", f.spaces)
}

// hubManager is one life of the manager.
type hubManager struct {
	process *Process
	cancel  context.CancelFunc
	done    chan error
}

// start starts a manager as cmd/hub would, without leader election.
func (f *fleet) start(options ...func(*manager.Options)) error {
	m := &hubManager{process: &Process{Board: f.board}, done: make(chan error, 1)}
	config := rest.CopyConfig(f.hub.Config)
	config.Wrap(wrapped(m.process, hub))
	o := manager.Options{Metrics: "0", Probes: "0", Inventory: v1alpha1.InventoryNamespace, Shutdown: 20 * time.Second,
		SharedProcess: true, Transport: m.process.Transport,
		HubInformer: m.process.Informer(hub), MemberInformer: func(member string) inventory.NewInformer { return m.process.Informer(member) }}
	for _, option := range options {
		option(&o)
	}
	mgr, err := manager.New(config, o)
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	go func() { m.done <- mgr.Start(ctx) }()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manager = m
	return nil
}

// kill ends the manager as SIGKILL does: nothing that it still tries reaches a server.
func (m *hubManager) kill() {
	m.process.Kill()
	m.cancel()
}

// stop ends the manager as SIGTERM does.
func (m *hubManager) stop() error {
	m.cancel()
	select {
	case err := <-m.done:
		return err
	case <-time.After(time.Minute):
		return errors.New("the manager did not stop within a minute")
	}
}

func wrapped(p *Process, server string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return p.Transport(server, next) }
}

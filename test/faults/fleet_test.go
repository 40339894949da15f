//go:build faults

package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/hub/inventory"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
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
	*harness.Fleet
	witness *witness
	board   *Board

	mu      sync.Mutex
	manager *hubManager
	spaces  int
}

// startFleet starts the API servers, and no manager. Whatever the error, stop is to
// be called on what it returns.
func startFleet(ctx context.Context) (*fleet, error) {
	servers, err := harness.StartFleet(ctx, crds, func(i *harness.StandIn) { i.Delay = startup }, one, two, three)
	f := &fleet{Fleet: servers, board: &Board{}}
	if err != nil {
		return f, err
	}
	for name, member := range f.Members {
		if err := membership.Join(ctx, f.Hub.Config, member.Config, name, membership.Options{Labels: map[string]string{"name": name}}); err != nil {
			return f, err
		}
	}
	f.witness, err = newWitness(ctx, f)
	return f, err
}

func (f *fleet) stop() error {
	if f.manager != nil {
		f.manager.kill()
	}
	return f.Stop()
}

// server is the client of the hub or of a member.
func (f *fleet) server(name string) client.Client {
	if name == hub {
		return f.Hub.Client
	}
	return f.Members[name].Client
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
	*harness.Manager
	process *Process
}

// start starts a manager as cmd/hub would, without leader election.
func (f *fleet) start(options ...func(*manager.Options)) error {
	m := &hubManager{process: &Process{Board: f.board}}
	config := rest.CopyConfig(f.Hub.Config)
	config.Wrap(wrapped(m.process, hub))
	var err error
	m.Manager, err = harness.StartManager(config, func(o *manager.Options) {
		o.Transport, o.HubInformer = m.process.Transport, m.process.Informer(hub)
		o.MemberInformer = func(member string) inventory.NewInformer { return m.process.Informer(member) }
		for _, option := range options {
			option(o)
		}
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manager = m
	return nil
}

// kill ends the manager as SIGKILL does: nothing that it still tries reaches a server.
func (m *hubManager) kill() {
	m.process.Kill()
	m.Cancel()
}

func wrapped(p *Process, server string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return p.Transport(server, next) }
}

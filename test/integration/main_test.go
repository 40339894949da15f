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

	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

const crds = "../../deploy/crd"

// fleet is a hub with its manager and two members.
type fleet struct {
	*harness.Fleet

	manager *harness.Manager
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
	if err := lab.startManager(); err != nil {
		return 1, err
	}
	code = m.Run()
	if partyStarted != nil {
		err = partyStarted.stop()
	}
	return code, errors.Join(err, lab.stopManager())
}

func (f *fleet) startManager() error {
	m, err := harness.StartManager(f.Hub.Config, func(o *manager.Options) {
		o.Transport = func(_ string, next http.RoundTripper) http.RoundTripper { return interceptor{next} }
	})
	if err == nil {
		f.manager = m
	}
	return err
}

func (f *fleet) stopManager() error {
	if err := f.manager.Stop(); err != nil {
		return fmt.Errorf("the manager did not stop well: %w", err)
	}
	return nil
}

func (f *fleet) restartManager(t *testing.T) {
	t.Helper()
	if err := f.stopManager(); err != nil {
		t.Fatal(err)
	}
	if err := f.startManager(); err != nil {
		t.Fatal(err)
	}
}

package integration

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// severed is a way to the hub that can be cut while the member stays in reach.
type severed struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

func (s severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("the way to the hub is cut")
	}
	return s.next.RoundTrip(r)
}

// Not parallel: it replaces the manager.
func TestLeaderElection_ReplacesLeaderThatLosesItsLease(t *testing.T) {
	ns := namespace(t, "leaders")
	kept := create(t, cache(ns, "kept", one, two))
	isReady(t, kept)
	if err := lab.stopManager(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.startManager(); err != nil {
			t.Error(err)
		}
	})

	elected := func(cut *atomic.Bool) *harness.Manager {
		config := rest.CopyConfig(lab.Hub.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return severed{next, cut} })
		m, err := harness.StartManager(config, func(o *manager.Options) {
			o.LeaderElection, o.LeaderElectionNamespace = true, v1alpha1.InventoryNamespace
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var cutFirst, cutSecond atomic.Bool
	first := elected(&cutFirst)
	defer first.Cancel()
	change(t, kept, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.30" })
	becomes(t, kept, "is ready by the first leader", func(cc *v1alpha1.CacheCluster) error {
		return has(cc, v1alpha1.ConditionReady, "True", v1alpha1.ReasonAllMembersReady)
	})
	before := uidsOf(t, ns, "kept", one, two)
	second := elected(&cutSecond)

	cutFirst.Store(true)
	change(t, kept, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.31" })
	becomes(t, kept, "is ready by the second leader", func(cc *v1alpha1.CacheCluster) error {
		return has(cc, v1alpha1.ConditionReady, "True", v1alpha1.ReasonAllMembersReady)
	})
	select {
	case err := <-first.Done():
		if err == nil {
			t.Error("the leader that lost its lease returned no error")
		}
	case <-time.After(patience):
		t.Error("the leader that lost its lease works on")
	}
	if diff := cmp.Diff(before, uidsOf(t, ns, "kept", one, two)); diff != "" {
		t.Errorf("something was recreated (-before +after):\n%s", diff)
	}
	if err := lab.Hub.Client.Delete(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	gone(t, one, ns, "kept")
	gone(t, two, ns, "kept")
	if err := second.Stop(); err != nil {
		t.Errorf("the second manager: %v", err)
	}
}

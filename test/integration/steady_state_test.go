package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// quiet is how long nothing may be written. Resyncs and retries would come within
// it; a longer one only finds slower mistakes.
const quiet = 5 * time.Second

// writeRequests of the whole process, by method and host. Nothing else than the
// manager writes while a test that is not parallel waits.
func writeRequests(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["method"] != "GET" {
				found[labels["method"]+" "+labels["host"]] += m.GetCounter().GetValue()
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("no requests are counted: has the metric another name?")
	}
	return found
}

// everything that the manager writes, by name and version.
func everythingOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := func(where string, c client.Client, apiVersion, kind, namespace string) {
		u := &unstructured.UnstructuredList{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind + "List")
		if err := c.List(t.Context(), u, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range u.Items {
			found[fmt.Sprintf("%s %s/%s", where, kind, u.Items[i].GetName())] = u.Items[i].GetResourceVersion()
		}
	}
	list("hub", lab.Hub.Client, v1alpha1.GroupVersion.String(), "CacheCluster", namespace)
	list("hub", lab.Hub.Client, v1alpha1.GroupVersion.String(), "MemberCache", namespace)
	list("hub", lab.Hub.Client, "multicluster.x-k8s.io/v1alpha1", "ClusterProfile", v1alpha1.InventoryNamespace)
	for name, m := range lab.Members {
		list(name, m.Client, "v1", "Service", namespace)
		list(name, m.Client, "apps/v1", "StatefulSet", namespace)
		list(name, m.Client, "policy/v1", "PodDisruptionBudget", namespace)
	}
	return found
}

// staysQuiet waits until writes have ceased, and then sees that none comes.
func staysQuiet(t *testing.T, namespace string) {
	t.Helper()
	settled := writeRequests(t)
	eventually(t, "writes cease", func(ctx context.Context) error {
		before := writeRequests(t)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		settled = writeRequests(t)
		if diff := cmp.Diff(before, settled); diff != "" {
			return fmt.Errorf("within a second:\n%s", diff)
		}
		return nil
	})
	versions := everythingOf(t, namespace)
	select {
	case <-time.After(quiet):
	case <-t.Context().Done():
	}
	if diff := cmp.Diff(settled, writeRequests(t)); diff != "" {
		t.Errorf("write requests in %s (-before +after):\n%s", quiet, diff)
	}
	if diff := cmp.Diff(versions, everythingOf(t, namespace)); diff != "" {
		t.Errorf("changed in %s (-before +after):\n%s", quiet, diff)
	}
}

// Not parallel: it counts every write request of the process.
func TestSteadyState_WritesNothingAlsoAfterRestart(t *testing.T) {
	ns := namespace(t, "steady")
	ready := create(t, cache(ns, "ready", one, two))
	rich := cache(ns, "rich", one)
	rich.Spec.CacheTemplate = full()
	create(t, rich)
	blocked := create(t, cache(ns, "blocked", one, "nowhere"))
	isReady(t, ready)
	isReady(t, rich)
	inState(t, blocked, "nowhere", v1alpha1.MemberBlocked, v1alpha1.ReasonUnknownMember)
	inState(t, blocked, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)

	t.Run("nothing is written", func(t *testing.T) { staysQuiet(t, ns) })
	versions := everythingOf(t, ns)
	t.Run("nothing is written by a manager that has just started", func(t *testing.T) {
		lab.restartManager(t)
		requests := writeRequests(t)
		// It has worked when it repairs something.
		drifted := create(t, cache(ns, "probe", one, two))
		isReady(t, drifted)
		if err := lab.Hub.Client.Delete(t.Context(), drifted); err != nil {
			t.Fatal(err)
		}
		gone(t, one, ns, "probe")
		gone(t, two, ns, "probe")
		if cmp.Equal(requests, writeRequests(t)) {
			t.Error("the new manager wrote nothing at all")
		}
		eventually(t, "the probe is deleted", func(ctx context.Context) error {
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(drifted), drifted); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		staysQuiet(t, ns)
		if diff := cmp.Diff(versions, everythingOf(t, ns)); diff != "" {
			t.Errorf("what was settled before the restart changed (-before +after):\n%s", diff)
		}
	})
}

func TestMetrics_FollowPrometheusNaming(t *testing.T) {
	ns := namespace(t, "metrics")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	if err := lab.Members[one].Client.Delete(t.Context(), childKinds(ns, "sessions")[0]); err != nil {
		t.Fatal(err)
	}
	becomes(t, cc, "reports the correction", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil || entry.LastDrift == nil {
			return fmt.Errorf("no drift was corrected: %w", err)
		}
		return nil
	})
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var ours []*dto.MetricFamily
	names := map[string]bool{}
	for _, family := range families {
		if name := family.GetName(); len(name) > 14 && name[:14] == "reconcile_lab_" {
			ours = append(ours, family)
			names[name] = true
		}
	}
	for _, name := range []string{"reconcile_lab_member_reachable", "reconcile_lab_drift_repair_seconds"} {
		if !names[name] {
			t.Errorf("no metric %s among %v", name, names)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(ours).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

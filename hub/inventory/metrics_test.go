package inventory

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// seriesOf returns the number of series of a member in the whole registry.
func seriesOf(cluster string) int {
	families, _ := metrics.Registry.Gather()
	n := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if labelOf(m, "cluster") == cluster {
				n++
			}
		}
	}
	return n
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func TestVerbOf_ReturnsTheVerbOfTheAuthorization(t *testing.T) {
	for _, c := range []struct{ method, url, contentType, want string }{
		{"GET", "/readyz", "", "get"},
		{"GET", "/apis", "", "get"},
		{"GET", "/api/v1/services", "", "list"},
		{"GET", "/api/v1/services?watch=true&resourceVersion=4", "", "watch"},
		{"GET", "/api/v1/namespaces", "", "list"},
		{"GET", "/api/v1/namespaces/shop", "", "get"},
		{"GET", "/api/v1/namespaces/shop/services", "", "list"},
		{"GET", "/api/v1/namespaces/shop/services/sessions", "", "get"},
		{"GET", "/apis/apps/v1/namespaces/shop/statefulsets", "", "list"},
		{"GET", "/apis/apps/v1/namespaces/shop/statefulsets/sessions", "", "get"},
		{"GET", "/apis/apps/v1/namespaces/shop/statefulsets/sessions/status", "", "get"},
		{"POST", "/api/v1/namespaces", "application/json", "create"},
		{"PUT", "/api/v1/namespaces/shop/services/sessions", "application/json", "update"},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/sessions", "application/apply-patch+yaml", "apply"},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/sessions", "application/merge-patch+json", "patch"},
		{"DELETE", "/apis/apps/v1/namespaces/shop/statefulsets/sessions", "", "delete"},
		{"DELETE", "/apis/apps/v1/namespaces/shop/statefulsets", "", "deletecollection"},
		{"OPTIONS", "/api", "", "connect"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://member"+c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", c.contentType)
		if got := verbOf(r); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.url, got, c.want)
		}
	}
}

func TestMemberMetrics_AreRemovedWhenTheMemberLeaves(t *testing.T) {
	r, server := newRig(t), startServer(t)
	_, leave := r.join("counted", server.kubeconfig("good"))
	r.waitForReachable("counted", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
	is := func(state breakerState) bool {
		return valueOf(t, breakerStates.WithLabelValues("counted", string(state))) == 1
	}
	eventually(t, "answered requests are counted", func() bool {
		return is(breakerClosed) && valueOf(t, memberRequests.WithLabelValues("counted", "get", "200")) > 2
	})
	server.CloseClientConnections()
	server.Close()
	eventually(t, "unanswered requests are counted", func() bool {
		return is(breakerOpen) && valueOf(t, memberRequests.WithLabelValues("counted", "get", "error")) > 2
	})
	before := valueOf(t, members.WithLabelValues("unreachable"))
	leave()
	if n := seriesOf("counted"); n > 0 {
		t.Errorf("%d series remain of a member that left", n)
	}
	if after := valueOf(t, members.WithLabelValues("unreachable")); after != before-1 {
		t.Errorf("%v members were unreachable, then %v", before, after)
	}
}

// valueOf returns the value of a gauge or counter.
func valueOf(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var written dto.Metric
	if err := m.Write(&written); err != nil {
		t.Fatal(err)
	}
	return written.GetGauge().GetValue() + written.GetCounter().GetValue()
}

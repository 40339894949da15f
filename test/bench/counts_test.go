package main

import (
	"maps"
	"strings"
	"testing"
)

// apiServerMetrics is an excerpt of an API server's metrics.
const apiServerMetrics = `
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="cache.reconcile-lab.io",resource="membercaches",scope="resource",subresource="",verb="POST",version="v1alpha1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cache.reconcile-lab.io",resource="membercaches",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 6
apiserver_request_total{code="409",component="apiserver",dry_run="",group="cache.reconcile-lab.io",resource="membercaches",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="apps",resource="statefulsets",scope="resource",subresource="",verb="APPLY",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="statefulsets",scope="resource",subresource="",verb="APPLY",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="statefulsets",scope="resource",subresource="status",verb="PUT",version="v1"} 9
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 70
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="statefulsets",scope="cluster",subresource="",verb="LIST",version="v1"} 8
`

func TestCountMutations_NamesRequestsByVerbAndResource(t *testing.T) {
	metrics, err := parseMetrics(strings.NewReader(apiServerMetrics))
	if err != nil {
		t.Fatal(err)
	}
	family := metrics["apiserver_request_total"]
	for _, c := range []struct {
		where, why string
		member     bool
		want       counts
		writes     float64
	}{
		{"hub", "only the manager writes there, except for leases", false, counts{
			"POST membercaches": 3, "PATCH membercaches/status": 6, "PATCH membercaches/status refused with 409": 1,
			"dry-run APPLY statefulsets": 2, "APPLY statefulsets": 2, "PUT statefulsets/status": 9, "POST pods": 4,
		}, 25},
		{"member", "Kubernetes writes other resources and subresources", true, counts{
			"dry-run APPLY statefulsets": 2, "APPLY statefulsets": 2,
		}, 2},
	} {
		got := countMutations(family, c.member)
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %s: %v, want %v", c.where, c.why, got, c.want)
		}
		if got.writes() != c.writes {
			t.Errorf("%s: %v writes, want %v: a dry run is no write", c.where, got.writes(), c.writes)
		}
	}
}

func TestCounts_CalculateByName(t *testing.T) {
	before, after := counts{"a": 1, "b": 2}, counts{"a": 1, "b": 5, "c": 1}
	if got, want := after.subtract(before), (counts{"b": 3, "c": 1}); !maps.Equal(got, want) {
		t.Errorf("subtract: %v, want %v", got, want)
	}
	if got, want := after.exclude("b", 5), (counts{"a": 1, "c": 1}); !maps.Equal(got, want) {
		t.Errorf("exclude: %v, want %v", got, want)
	}
	if got, want := (counts{"a": 3}).divide(2), (counts{"a": 1.5}); !maps.Equal(got, want) {
		t.Errorf("divide: %v, want %v", got, want)
	}
	if got, want := counts(nil).add(before), before; !maps.Equal(got, want) {
		t.Errorf("add to nil: %v, want %v", got, want)
	}
}

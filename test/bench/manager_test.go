package main

import (
	"maps"
	"strings"
	"testing"
)

// managerMetrics is an excerpt of the hub manager's metrics.
const managerMetrics = `
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="hub",result="error"} 0
controller_runtime_reconcile_total{controller="hub",result="success"} 7
controller_runtime_reconcile_total{controller="spoke",result="requeue_after"} 5
controller_runtime_reconcile_total{controller="spoke",result="success"} 3
controller_runtime_reconcile_total{controller="clusterprofile",result="success"} 9
# TYPE go_gc_heap_live_bytes gauge
go_gc_heap_live_bytes 1.2e+07
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 4
rest_client_requests_total{code="201",host="127.0.0.1:1",method="GET"} 1
rest_client_requests_total{code="200",host="127.0.0.1:2",method="PATCH"} 2
rest_client_requests_total{code="200",host="127.0.0.1:3",method="PATCH"} 8
`

func TestMetrics_CountRequestsAndReconciles(t *testing.T) {
	families, err := parseMetrics(strings.NewReader(managerMetrics))
	if err != nil {
		t.Fatal(err)
	}
	m := metrics(families)
	hosts := map[string]string{"127.0.0.1:1": "hub", "127.0.0.1:2": "members"}
	if got, want := m.requests(hosts), (counts{"GET hub": 5, "PATCH members": 2}); !maps.Equal(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
	reconciles := m.reconciles()
	if want := (counts{"hub success": 7, "spoke requeue_after": 5, "spoke success": 3}); !maps.Equal(reconciles, want) {
		t.Errorf("reconciles: %v, want %v", reconciles, want)
	}
	if got := (operation{Reconciles: reconciles}).reconciles(spokeController); got != 8 {
		t.Errorf("spoke reconciles: %v, want 8", got)
	}
	if got, err := m.gauge("go_gc_heap_live_bytes"); err != nil || got != 12e6 {
		t.Errorf("live heap: %v (%v)", got, err)
	}
	if _, err := m.gauge("no_such_metric"); err == nil {
		t.Error("a metric that is missing has a value")
	}
}

func TestOperation_CountsTheNewProcessAfterARestart(t *testing.T) {
	before := operation{Hub: counts{"a": 5}, Manager: counts{"GET hub": 90}, Reconciles: counts{"spoke success": 70}, CPUSeconds: 4}
	after := operation{Hub: counts{"a": 6}, Manager: counts{"GET hub": 10}, Reconciles: counts{"spoke success": 3}, CPUSeconds: 5}
	used := after.afterRestart(before)
	if !maps.Equal(used.Hub, counts{"a": 1}) || !maps.Equal(used.Manager, counts{"GET hub": 10}) ||
		!maps.Equal(used.Reconciles, counts{"spoke success": 3}) || used.CPUSeconds != 1 {
		t.Errorf("%+v", used)
	}
}

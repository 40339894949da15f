package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counts of requests, by what an API server says of them: "PATCH statefulsets",
// "PATCH membercaches/status", "dry-run APPLY services", "PATCH membercaches refused with 409".
type counts map[string]float64

const dryRun = "dry-run "

func (c counts) minus(before counts) counts {
	left := counts{}
	for what, n := range c {
		if n != before[what] {
			left[what] = n - before[what]
		}
	}
	return left
}

// without takes out requests of the bench's own.
func (c counts) without(what string, n int) counts {
	left := maps.Clone(c)
	if left[what] -= float64(n); left[what] == 0 {
		delete(left, what)
	}
	return left
}

func (c counts) plus(other counts) counts {
	sum := counts{}
	maps.Copy(sum, c)
	for what, n := range other {
		sum[what] += n
	}
	return sum
}

// per operation.
func (c counts) per(n int) counts {
	share := counts{}
	for what, count := range c {
		share[what] = count / float64(max(n, 1))
	}
	return share
}

// writes are all but dry runs.
func (c counts) writes() (n float64) {
	for what, count := range c {
		if !strings.HasPrefix(what, dryRun) {
			n += count
		}
	}
	return n
}

var mutating = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// managed are the resources that the manager writes in a member. What Kubernetes
// itself writes about them goes to their subresources, or is something else.
var managed = []string{"statefulsets", "services", "poddisruptionbudgets", "configmaps", "secrets",
	"serviceaccounts", "persistentvolumeclaims", "namespaces"}

// mutations asks a cluster's API server what changed something so far. Nobody but
// the manager and the bench writes on the hub of a lab, except for leases.
func (f *fleet) mutations(ctx context.Context, c *cluster) (counts, error) {
	raw, err := c.raw.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	all, err := parse(bytes.NewReader(only(raw, "apiserver_request_total{")))
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	return countMutations(all["apiserver_request_total"], c != f.hub()), nil
}

func countMutations(family *dto.MetricFamily, member bool) counts {
	count := counts{}
	for _, m := range family.GetMetric() {
		l := labels(m)
		if !slices.Contains(mutating, l["verb"]) || l["resource"] == "leases" ||
			member && (l["subresource"] != "" || !slices.Contains(managed, l["resource"])) {
			continue
		}
		what := l["verb"] + " " + l["resource"]
		if l["subresource"] != "" {
			what += "/" + l["subresource"]
		}
		if l["dry_run"] != "" {
			what = dryRun + what
		}
		if !strings.HasPrefix(l["code"], "2") {
			what += " refused with " + l["code"]
		}
		count[what] += value(m)
	}
	return count
}

// only keeps the lines of one metric: an API server has a megabyte of others.
func only(text []byte, prefix string) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(prefix)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

func parse(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
}

func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// value of a sample whose type was left out.
func value(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetUntyped().GetValue() + m.GetGauge().GetValue()
}

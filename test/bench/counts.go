package main

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counts are numbers by name. The names of requests have the verb first: "PATCH
// statefulsets", "PATCH membercaches/status", "dry-run APPLY services", "PATCH
// membercaches refused with 409".
type counts map[string]float64

const dryRun = "dry-run "

// subtract returns what was counted since before, without the names that did not change.
func (c counts) subtract(before counts) counts {
	difference := counts{}
	for name, n := range c {
		if n != before[name] {
			difference[name] = n - before[name]
		}
	}
	return difference
}

// exclude returns the counts without n requests that bench sent.
func (c counts) exclude(name string, n int) counts {
	remaining := maps.Clone(c)
	if remaining[name] -= float64(n); remaining[name] == 0 {
		delete(remaining, name)
	}
	return remaining
}

func (c counts) add(other counts) counts {
	sum := counts{}
	maps.Copy(sum, c)
	for name, n := range other {
		sum[name] += n
	}
	return sum
}

// divide returns the counts of one of n operations.
func (c counts) divide(n int) counts {
	share := counts{}
	for name, count := range c {
		share[name] = count / float64(max(n, 1))
	}
	return share
}

// total returns the sum of all counts whose name has the prefix.
func (c counts) total(prefix string) (n float64) {
	for name, count := range c {
		if strings.HasPrefix(name, prefix) {
			n += count
		}
	}
	return n
}

// writes returns the number of requests that are not dry runs.
func (c counts) writes() float64 { return c.total("") - c.total(dryRun) }

var mutatingVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// managedResources are the resources that the manager writes in a member. Kubernetes
// itself writes only their subresources, and other resources.
var managedResources = []string{"statefulsets", "services", "poddisruptionbudgets", "configmaps", "secrets",
	"serviceaccounts", "persistentvolumeclaims", "namespaces"}

func countMutations(family *dto.MetricFamily, isMember bool) counts {
	count := counts{}
	for _, m := range family.GetMetric() {
		l := labelsOf(m)
		if !slices.Contains(mutatingVerbs, l["verb"]) || l["resource"] == "leases" ||
			isMember && (l["subresource"] != "" || !slices.Contains(managedResources, l["resource"])) {
			continue
		}
		name := l["verb"] + " " + l["resource"]
		if l["subresource"] != "" {
			name += "/" + l["subresource"]
		}
		if l["dry_run"] != "" {
			name = dryRun + name
		}
		if !strings.HasPrefix(l["code"], "2") {
			name += " refused with " + l["code"]
		}
		count[name] += valueOf(m)
	}
	return count
}

func filterLines(text []byte, prefix string) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(prefix)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

func parseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
}

func labelsOf(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// valueOf returns the value of a sample of any type, also where filterLines removed
// the line with the type.
func valueOf(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetUntyped().GetValue() + m.GetGauge().GetValue()
}

package fieldpattern_test

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/internal/fieldpattern"
)

func TestParse_NormalizesPath(t *testing.T) {
	for given, want := range map[string]string{
		"spec.replicas":                         "spec.replicas",
		".spec.replicas":                        "spec.replicas",
		"metadata.annotations.example.org/note": "metadata.annotations.example.org/note",
		`spec.template.spec.containers[name="memcached"].image`:            `spec.template.spec.containers[name="memcached"].image`,
		`spec.template.spec.containers[name="memcached"]`:                  `spec.template.spec.containers[name="memcached"]`,
		`spec.ports[protocol="TCP",port=11211].targetPort`:                 `spec.ports[port=11211,protocol="TCP"].targetPort`,
		`spec.template.spec.containers[name="a]b,c"].env[name="D"].value`:  `spec.template.spec.containers[name="a]b,c"].env[name="D"].value`,
		`metadata.finalizers[="example.org/hold"]`:                         `metadata.finalizers[="example.org/hold"]`,
		`spec.template.spec.tolerations[0]`:                                `spec.template.spec.tolerations[0]`,
		`spec.template.spec.containers[name="a\"]"].image`:                 `spec.template.spec.containers[name="a\"]"].image`,
		"spec.template.metadata.annotations.kubectl.kubernetes.io/restart": "spec.template.metadata.annotations.kubectl.kubernetes.io/restart",
	} {
		got, err := fieldpattern.Parse(given)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestParse_ReportsProblem(t *testing.T) {
	for given, why := range map[string]string{
		"":                               "empty",
		".":                              "empty",
		"replicas":                       "must begin with spec or metadata",
		"status.replicas":                "must begin with spec or metadata",
		"spec..replicas":                 "a field name is missing",
		"spec.":                          "a field name is missing",
		`spec.containers[name="x"`:       "a ] is missing",
		`spec.containers[name="x]`:       "a ] is missing",
		`spec.containers[name=x].image`:  "double quotes",
		`spec.containers[x].image`:       "does not select a list item",
		`spec.containers[].image`:        "does not select a list item",
		`spec.containers[-1].image`:      "does not select a list item",
		`spec.containers[name="x"]image`: "a dot is missing",
		`spec.containers]`:               "is not a field name",
		"spec.re plicas":                 "is not a field name",
		"/spec/replicas":                 "must begin with spec or metadata",
		"$.spec.replicas":                "must begin with spec or metadata",
		`[name="x"].spec`:                "must begin with spec or metadata",
	} {
		if got, err := fieldpattern.Parse(given); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, %v; want an error with %q", given, got, err, why)
		}
	}
}

func FuzzParse_IsIdempotent(f *testing.F) {
	f.Add(`spec.template.spec.containers[name="memcached"].image`)
	f.Add(`spec.ports[protocol="TCP",port=11211]`)
	f.Fuzz(func(t *testing.T, s string) {
		once, err := fieldpattern.Parse(s)
		if err != nil {
			return
		}
		if twice, err := fieldpattern.Parse(once); err != nil || twice != once {
			t.Errorf("%q, then %q: %v", once, twice, err)
		}
	})
}

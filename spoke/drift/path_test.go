package drift_test

import (
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func TestAPathReadsAsAStatusShowsIt(t *testing.T) {
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
		got, err := drift.ParsePath(given)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestAPathThatCannotBeReadSaysWhy(t *testing.T) {
	for given, why := range map[string]string{
		"":                               "empty",
		".":                              "empty",
		"replicas":                       "begins with spec or metadata",
		"status.replicas":                "begins with spec or metadata",
		"spec..replicas":                 "a field name is missing",
		"spec.":                          "a field name is missing",
		`spec.containers[name="x"`:       "a ] is missing",
		`spec.containers[name="x]`:       "a ] is missing",
		`spec.containers[name=x].image`:  "double quotes",
		`spec.containers[x].image`:       "is no list item",
		`spec.containers[].image`:        "is no list item",
		`spec.containers[-1].image`:      "is no list item",
		`spec.containers[name="x"]image`: "a dot is missing",
		`spec.containers]`:               "is no field name",
		"spec.re plicas":                 "is no field name",
		"/spec/replicas":                 "begins with spec or metadata",
		"$.spec.replicas":                "begins with spec or metadata",
		`[name="x"].spec`:                "begins with spec or metadata",
	} {
		if got, err := drift.ParsePath(given); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, %v; want an error with %q", given, got, err, why)
		}
	}
}

// Whatever drifts can be copied from the status into a rule.
func TestEveryPathOfAnIntentIsReadBack(t *testing.T) {
	_, _, wanted := statefulSet(t)
	for p := range wanted.All() {
		shown := strings.TrimPrefix(p.String(), ".")
		if got, err := drift.ParsePath(shown); err != nil || got != shown {
			t.Errorf("%q: %q, %v", shown, got, err)
		}
	}
}

func TestARuleThatCannotBeReadIsNamed(t *testing.T) {
	policy, problems := drift.NewPolicy(&v1alpha1.Policies{Drift: &v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{
		{Path: "spec.replicas"}, {Path: "replicas"}, {Manager: "hpa"},
	}}})
	if len(problems) != 1 || problems[0].Index != 1 || problems[0].Path != "replicas" || len(policy.Ignore) != 2 {
		t.Errorf("problems %v, rules %v", problems, policy.Ignore)
	}
}

func FuzzAPathIsReadTheSameTwice(f *testing.F) {
	f.Add(`spec.template.spec.containers[name="memcached"].image`)
	f.Add(`spec.ports[protocol="TCP",port=11211]`)
	f.Fuzz(func(t *testing.T, s string) {
		once, err := drift.ParsePath(s)
		if err != nil {
			return
		}
		if twice, err := drift.ParsePath(once); err != nil || twice != once {
			t.Errorf("%q, then %q: %v", once, twice, err)
		}
	})
}

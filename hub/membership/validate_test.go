package membership

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestValidateName_AcceptsDNSLabelsAndSuggestsOneOtherwise(t *testing.T) {
	for _, tc := range []struct {
		reason, name, want string
	}{
		{"a DNS label is a name", "eu-1", ""},
		{"63 characters are allowed", strings.Repeat("a", 63), ""},
		{"64 are too long and the limit is named", strings.Repeat("a", 64), "64 characters; shorten it to at most 63"},
		{"an empty name is refused with an example", "", "such as eu-1"},
		{"upper case is refused and the nearest good name suggested", "EU_West.1", `such as "eu-west-1"`},
		{"a hyphen at an end is refused", "-eu-", `such as "eu"`},
		{"a dot would make the MemberCache's name ambiguous", "eu.1", `such as "eu-1"`},
		{"a name with nothing usable still gets a suggestion", "___", `such as "eu-1"`},
	} {
		t.Run(tc.reason, func(t *testing.T) { expect(t, ValidateName(tc.name), tc.want) })
	}
}

func TestValidateLabels_RefusesWhatTheAPIServerRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		labels map[string]string
		want   string
	}{
		{"no labels are fine", nil, ""},
		{"qualified keys are fine", map[string]string{"topology.kubernetes.io/region": "eu", "tier": ""}, ""},
		{"a bad key is named", map[string]string{"a b": "c"}, `label key "a b"`},
		{"a bad value is named with its key", map[string]string{"tier": "very good"}, `label tier: value "very good"`},
		{"the label of the cluster manager is refused", map[string]string{"x-k8s.io/cluster-manager": "ocm"}, "set by join"},
	} {
		t.Run(tc.reason, func(t *testing.T) { expect(t, ValidateLabels(tc.labels), tc.want) })
	}
}

// expect fails unless err is nil where want is empty, and contains want otherwise.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Fatalf("no error, want one with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Fatalf("error %q does not contain %q", err, want)
	}
}

// Every member grants these rights: the second list makes a new right visible in review.
func TestMemberObjects_GrantExactlyTheRightsThatAreUsed(t *testing.T) {
	objs, err := memberObjects()
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]string, 0, len(objs))
	var rules any
	for _, o := range objs {
		kinds = append(kinds, o.GetKind()+"/"+o.GetName())
		if o.GetKind() == "ClusterRole" {
			rules = o.Object["rules"]
		}
	}
	if got, want := strings.Join(kinds, " "), "Namespace/reconcile-lab-system ServiceAccount/reconcile-lab ClusterRole/reconcile-lab-member ClusterRoleBinding/reconcile-lab-member"; got != want {
		t.Errorf("objects\n got %s\nwant %s", got, want)
	}
	got, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	want := `- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [list]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [create]
- nonResourceURLs: [/readyz, /healthz, /version]
  verbs: [get]
`
	var canonical any
	if err := yaml.Unmarshal([]byte(want), &canonical); err != nil {
		t.Fatal(err)
	}
	wantBytes, err := yaml.Marshal(canonical)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(wantBytes) {
		t.Errorf("rules\n got %s\nwant %s", got, wantBytes)
	}
}

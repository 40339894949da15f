package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

const containerPath = `spec.template.spec.containers[name="memcached"]`

func TestIgnoredFields_MatchRuleAndOtherManager(t *testing.T) {
	intent, _, intentFields := statefulSet(t)
	limit := path("spec", "template", "spec", "containers", named("memcached"), "resources", "limits", "memory")
	argocd := entry("argocd", metav1.ManagedFieldsOperationApply, "", noon, intentFields)
	for _, c := range []struct {
		name, why string
		rules     []v1alpha1.DriftIgnore
		entries   []metav1.ManagedFieldsEntry
		want      []string
	}{
		{"no rule", "every field is corrected", nil, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas)}, nil},
		{"by path", "another manager owns the field", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas, image)}, []string{"spec.replicas"}},
		{"by path, owned through a subresource", "the other manager owns the field", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}},
			[]metav1.ManagedFieldsEntry{entry("kcm", metav1.ManagedFieldsOperationUpdate, "scale", noon, without(intentFields.Intersection(intentFields), image))}, []string{"spec.replicas"}},
		{"by path, without an owner", "the hub owns the field again", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, image)}, nil},
		{"by path, owned by the hub", "no other manager owns the field", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{ours(intentFields)}, nil},
		{"by path and manager", "the rule names another manager", []v1alpha1.DriftIgnore{{Path: "spec.replicas", Manager: "hpa"}},
			[]metav1.ManagedFieldsEntry{by("kubectl-scale", noon, replicas)}, nil},
		{"by manager", "the rule covers every field of the manager", []v1alpha1.DriftIgnore{{Manager: "hpa"}},
			[]metav1.ManagedFieldsEntry{by("hpa", noon, replicas, image), by("kubectl-edit", noon, limit)},
			[]string{"spec.replicas", containerPath + ".image"}},
		{"of another kind", "the rule names Services", []v1alpha1.DriftIgnore{{Kind: "Service", Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas)}, nil},
		{"by the path of a parent", "a path covers all fields below it", []v1alpha1.DriftIgnore{{Kind: "StatefulSet", Path: containerPath}},
			[]metav1.ManagedFieldsEntry{by("vpa", noon, replicas, limit)}, []string{containerPath + ".resources.limits.memory"}},
		{"by a path with a common prefix", "a name matches as a whole", []v1alpha1.DriftIgnore{{Path: "metadata.labels.app"}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, label)}, nil},
		{"by a name with dots", "names of labels contain dots", []v1alpha1.DriftIgnore{{Path: "metadata.labels." + v1alpha1.LabelInstance}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, label)}, []string{"metadata.labels." + v1alpha1.LabelInstance}},
		{"the labels and annotations of the hub", "without them the hub would not recognize its children", []v1alpha1.DriftIgnore{{Path: "metadata"}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, hashPath, label, path("metadata", "annotations", v1alpha1.AnnotationOwner), path("metadata", "labels", v1alpha1.LabelCacheCluster))},
			[]string{"metadata.labels." + v1alpha1.LabelInstance}},
		{"a list item and its key", "an item without its key cannot be applied", []v1alpha1.DriftIgnore{{Path: "spec.template.spec.containers", Manager: "argocd"}},
			[]metav1.ManagedFieldsEntry{argocd}, []string{containerPath + ".args", containerPath + ".image"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, problems := drift.NewPolicy(&v1alpha1.Policies{Drift: &v1alpha1.DriftPolicy{Ignore: c.rules}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			live := intent.DeepCopy()
			live.SetManagedFields(c.entries)
			ignored := policy.IgnoredFields("StatefulSet", intentFields, live)
			got := pathsOf(ignored)
			if c.name == "a list item and its key" {
				got = got[:2]
				if ignored.Has(path("spec", "template", "spec", "containers", named("memcached"), "name")) {
					t.Error("the key of a list item is ignored")
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			reduced, err := drift.RemoveFields(typer, intent, ignored)
			if err != nil {
				t.Fatal(err)
			}
			remaining, err := drift.IntentFields(typer, reduced)
			if err != nil {
				t.Fatal(err)
			}
			if want := intentFields.Difference(ignored); !remaining.Equals(want) {
				t.Errorf("an apply of the reduced intent would own %s more and %s less", remaining.Difference(want), want.Difference(remaining))
			}
		})
	}
}

func TestRemoveFields_DoesNotChangeIntent(t *testing.T) {
	intent, _, _ := statefulSet(t)
	before := intent.DeepCopy()
	requests := path("spec", "template", "spec", "containers", named("memcached"), "resources", "requests", "memory")
	reduced, err := drift.RemoveFields(typer, intent, drift.NewFields(replicas, requests))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, intent); diff != "" {
		t.Errorf("the intent changed (-want +got):\n%s", diff)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(reduced.Object, "spec", "replicas"); found {
		t.Error("the reduced intent contains the replicas")
	}
	if reduced.GetName() != intent.GetName() || reduced.GetKind() != intent.GetKind() {
		t.Errorf("reduced intent of %s %q", reduced.GetKind(), reduced.GetName())
	}
}

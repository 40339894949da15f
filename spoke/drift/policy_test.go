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

func TestYieldedIsWhatARuleNamesAndAnotherManagerHolds(t *testing.T) {
	intent, _, wanted := statefulSet(t)
	limit := path("spec", "template", "spec", "containers", named("memcached"), "resources", "limits", "memory")
	argocd := entry("argocd", metav1.ManagedFieldsOperationApply, "", noon, wanted)
	for _, c := range []struct {
		name, why string
		rules     []v1alpha1.DriftIgnore
		entries   []metav1.ManagedFieldsEntry
		want      []string
	}{
		{"no rule", "nothing is left to others", nil, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas)}, nil},
		{"by path", "somebody else holds it", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas, image)}, []string{"spec.replicas"}},
		{"by path, held through a subresource", "it is held all the same", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}},
			[]metav1.ManagedFieldsEntry{entry("kcm", metav1.ManagedFieldsOperationUpdate, "scale", noon, without(wanted.Intersection(wanted), image))}, []string{"spec.replicas"}},
		{"by path, held by nobody", "it is ours again", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, image)}, nil},
		{"by path, held by us", "we leave nothing to ourselves", []v1alpha1.DriftIgnore{{Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{ours(wanted)}, nil},
		{"by path and manager", "another manager may not", []v1alpha1.DriftIgnore{{Path: "spec.replicas", Manager: "hpa"}},
			[]metav1.ManagedFieldsEntry{by("kubectl-scale", noon, replicas)}, nil},
		{"by manager", "whatever it holds", []v1alpha1.DriftIgnore{{Manager: "hpa"}},
			[]metav1.ManagedFieldsEntry{by("hpa", noon, replicas, image), by("kubectl-edit", noon, limit)},
			[]string{"spec.replicas", containerPath + ".image"}},
		{"of another kind", "the rule is about Services", []v1alpha1.DriftIgnore{{Kind: "Service", Path: "spec.replicas"}}, []metav1.ManagedFieldsEntry{by("hpa", noon, replicas)}, nil},
		{"by a path that holds it", "a path covers what is below it", []v1alpha1.DriftIgnore{{Kind: "StatefulSet", Path: containerPath}},
			[]metav1.ManagedFieldsEntry{by("vpa", noon, replicas, limit)}, []string{containerPath + ".resources.limits.memory"}},
		{"by a path that begins like it", "a name counts as a whole", []v1alpha1.DriftIgnore{{Path: "metadata.labels.app"}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, label)}, nil},
		{"by a name with dots", "names of labels hold dots", []v1alpha1.DriftIgnore{{Path: "metadata.labels." + v1alpha1.LabelInstance}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, label)}, []string{"metadata.labels." + v1alpha1.LabelInstance}},
		{"the marks", "without them the hub would not know its children again", []v1alpha1.DriftIgnore{{Path: "metadata"}},
			[]metav1.ManagedFieldsEntry{by("helm", noon, mark, label, path("metadata", "annotations", v1alpha1.AnnotationOwner), path("metadata", "labels", v1alpha1.LabelCacheCluster))},
			[]string{"metadata.labels." + v1alpha1.LabelInstance}},
		{"a list item and its key", "an item without its key can't be applied", []v1alpha1.DriftIgnore{{Path: "spec.template.spec.containers", Manager: "argocd"}},
			[]metav1.ManagedFieldsEntry{argocd}, []string{containerPath + ".args", containerPath + ".image"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, problems := drift.NewPolicy(&v1alpha1.Policies{Drift: &v1alpha1.DriftPolicy{Ignore: c.rules}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			live := intent.DeepCopy()
			live.SetManagedFields(c.entries)
			yielded := policy.IgnoredFields("StatefulSet", wanted, live)
			got := pathsOf(yielded)
			if c.name == "a list item and its key" {
				got = got[:2]
				if yielded.Has(path("spec", "template", "spec", "containers", named("memcached"), "name")) {
					t.Error("the key of a list item is yielded")
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			reduced, err := drift.RemoveFields(typer, intent, yielded)
			if err != nil {
				t.Fatal(err)
			}
			left, err := drift.IntentFields(typer, reduced)
			if err != nil {
				t.Fatal(err)
			}
			if want := wanted.Difference(yielded); !left.Equals(want) {
				t.Errorf("an apply of what is left would own %s more and %s less", left.Difference(want), want.Difference(left))
			}
		})
	}
}

func TestAnIntentIsNotChangedByWhatItYields(t *testing.T) {
	intent, _, _ := statefulSet(t)
	before := intent.DeepCopy()
	requests := path("spec", "template", "spec", "containers", named("memcached"), "resources", "requests", "memory")
	reduced, err := drift.RemoveFields(typer, intent, drift.NewFields(replicas, requests))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, intent); diff != "" {
		t.Errorf("the intent was changed:\n%s", diff)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(reduced.Object, "spec", "replicas"); found {
		t.Error("replicas are still there")
	}
	if reduced.GetName() != intent.GetName() || reduced.GetKind() != intent.GetKind() {
		t.Errorf("%s %q", reduced.GetKind(), reduced.GetName())
	}
}

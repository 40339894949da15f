package drift_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

var (
	typer = newTyper()
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func newTyper() drift.Typer {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return applyconfigurations.NewTypeConverter(scheme)
}

// statefulSet returns the intent of a StatefulSet, its hash and its fields.
func statefulSet(t *testing.T) (*unstructured.Unstructured, string, *drift.Fields) {
	t.Helper()
	children, problems := render.Render(&v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Name: "sessions.member-1", Namespace: "shop", UID: "u"},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "member-1"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range children {
		if c.Intent.GetKind() == "StatefulSet" {
			intentFields, err := drift.IntentFields(typer, c.Intent)
			if err != nil {
				t.Fatal(err)
			}
			return c.Intent, c.Hash, intentFields
		}
	}
	t.Fatal("no StatefulSet")
	return nil, "", nil
}

func path(parts ...any) fieldpath.Path { return fieldpath.MakePathOrDie(parts...) }

func named(name string) any {
	return fieldpath.KeyByFields("name", name)
}

var (
	replicas = path("spec", "replicas")
	image    = path("spec", "template", "spec", "containers", named("memcached"), "image")
	label    = path("metadata", "labels", v1alpha1.LabelInstance)
	hashPath = path("metadata", "annotations", v1alpha1.AnnotationIntent)
)

func without(set *drift.Fields, paths ...fieldpath.Path) *drift.Fields {
	return set.Difference(fieldpath.NewSet(paths...))
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource string, at time.Time, set *drift.Fields) metav1.ManagedFieldsEntry {
	raw, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	changedAt := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, Time: &changedAt, FieldsType: "FieldsV1", APIVersion: "apps/v1", FieldsV1: metav1.NewFieldsV1(string(raw))}
}

func ours(set *drift.Fields) metav1.ManagedFieldsEntry {
	return entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, "", noon.Add(-time.Hour), set)
}

func by(manager string, at time.Time, paths ...fieldpath.Path) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationUpdate, "", at, fieldpath.NewSet(paths...))
}

func TestDiff_ReportsFieldsMissingFromOwnEntry(t *testing.T) {
	intent, hash, intentFields := statefulSet(t)
	unreadable := by("kubectl-edit", noon, replicas)
	unreadable.FieldsV1 = metav1.NewFieldsV1(`{"nonsense":{}}`)
	withoutFields := by("kubectl-edit", noon, replicas)
	withoutFields.FieldsV1 = nil
	unreadableOwn := ours(intentFields)
	unreadableOwn.FieldsV1 = metav1.NewFieldsV1(`{"nonsense":{}}`)
	for _, c := range []struct {
		name, why  string
		hash       string
		entries    []metav1.ManagedFieldsEntry
		unrecorded *drift.Fields
		changed    bool
		fields     []string
		manager    string
		at         time.Time
	}{
		{name: "no drift", why: "the hub owns every field of the intent", hash: hash, entries: []metav1.ManagedFieldsEntry{ours(intentFields)}},
		{name: "kubectl scale", why: "the entry of the subresource contains the replicas", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), entry("kubectl", metav1.ManagedFieldsOperationUpdate, "scale", noon, fieldpath.NewSet(replicas))},
			fields:  []string{"spec.replicas"}, manager: "kubectl", at: noon},
		{name: "kubectl edit of the image", why: "the entry of the edit contains the image", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, image)), by("kubectl-edit", noon, image)},
			fields:  []string{`spec.template.spec.containers[name="memcached"].image`}, manager: "kubectl-edit", at: noon},
		{name: "a removed label", why: "no manager owns the label", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, label)), by("kubectl-edit", noon)},
			fields:  []string{"metadata.labels." + v1alpha1.LabelInstance}, manager: drift.Unknown},
		{name: "an env var of another manager", why: "an added field is not drift", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(intentFields), by("injector", noon,
				path("spec", "template", "spec", "containers", named("memcached"), "env", named("DEBUG")))}},
		{name: "a field with two owners", why: "the hub still owns a shared field", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(intentFields), by("argocd", noon, replicas)}},
		{name: "a changed intent hash of another manager", why: "the annotation is a field like any other", hash: "forged",
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, hashPath)), by("kubectl-annotate", noon, hashPath)},
			fields:  []string{"metadata.annotations." + v1alpha1.AnnotationIntent}, manager: "kubectl-annotate", at: noon},
		{name: "a removed intent hash", why: "a removed annotation is drift, not a changed intent", hash: "",
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, hashPath))},
			fields:  []string{"metadata.annotations." + v1alpha1.AnnotationIntent}, manager: drift.Unknown},
		{name: "a changed intent", why: "the hub owns the annotation, which contains another hash", hash: "older",
			entries: []metav1.ManagedFieldsEntry{ours(intentFields)}, changed: true},
		{name: "a changed intent and drift", why: "the apply of the intent corrects the drift, which is not counted", hash: "older",
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), by("kubectl-edit", noon, replicas)}, changed: true},
		{name: "two managers", why: "the latest manager is reported", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas, image)), by("first", noon.Add(-time.Minute), replicas), by("second", noon, image)},
			fields:  []string{"spec.replicas", `spec.template.spec.containers[name="memcached"].image`}, manager: "second", at: noon},
		{name: "two managers, the latest first", why: "the order of entries does not matter", hash: hash,
			entries: []metav1.ManagedFieldsEntry{by("second", noon, image), by("first", noon.Add(-time.Minute), replicas), ours(without(intentFields, replicas, image))},
			fields:  []string{"spec.replicas", `spec.template.spec.containers[name="memcached"].image`}, manager: "second", at: noon},
		{name: "a later manager of other fields", why: "only an owner of a drifted field is reported", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), by("kubectl-edit", noon.Add(-time.Minute), replicas), by("controller", noon, path("status", "replicas"))},
			fields:  []string{"spec.replicas"}, manager: "kubectl-edit", at: noon.Add(-time.Minute)},
		{name: "an update of the hub", why: "the hub owns a field that it patched", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), by(v1alpha1.FieldManager, noon, replicas)}},
		{name: "an unreadable entry", why: "an unreadable entry owns no field", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), unreadable},
			fields:  []string{"spec.replicas"}, manager: drift.Unknown},
		{name: "an entry without fields", why: "the entry owns no field", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas)), withoutFields},
			fields:  []string{"spec.replicas"}, manager: drift.Unknown},
		{name: "a field that the last apply did not record", why: "a member of another version records other fields", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas))}, unrecorded: fieldpath.NewSet(replicas)},
		{name: "a drifted field and one that the last apply did not record", why: "only the other field is drift", hash: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(intentFields, replicas, image)), by("kubectl-edit", noon, image)}, unrecorded: fieldpath.NewSet(replicas),
			fields: []string{`spec.template.spec.containers[name="memcached"].image`}, manager: "kubectl-edit", at: noon},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := intent.DeepCopy()
			annotations := live.GetAnnotations()
			annotations[v1alpha1.AnnotationIntent] = c.hash
			live.SetAnnotations(annotations)
			live.SetManagedFields(c.entries)
			got := drift.Diff(intentFields, hash, live, c.unrecorded)
			if got.IntentChanged != c.changed || got.Clean() != (!c.changed && len(c.fields) == 0) {
				t.Errorf("%s: changed %t, clean %t", c.why, got.IntentChanged, got.Clean())
			}
			if diff := cmp.Diff(c.fields, pathsOf(got.Fields)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s", c.why, diff)
			}
			if got.Fields == nil {
				return
			}
			if latest := drift.Attribute(live, got.Fields); latest.Manager != c.manager || !latest.At.Equal(c.at) {
				t.Errorf("%s: manager %q at %s, want %q at %s", c.why, latest.Manager, latest.At, c.manager, c.at)
			}
		})
	}

	t.Run("an unreadable entry of the hub", func(t *testing.T) {
		live := intent.DeepCopy()
		live.SetManagedFields([]metav1.ManagedFieldsEntry{unreadableOwn})
		if got := drift.Diff(intentFields, hash, live, nil); got.Clean() {
			t.Error("clean, want one more apply")
		}
	})
}

func TestIntentFields_ContainEveryFieldButIdentity(t *testing.T) {
	_, _, intentFields := statefulSet(t)
	for _, p := range []fieldpath.Path{replicas, image, label, hashPath, path("spec", "selector"), path("spec", "serviceName")} {
		if !intentFields.Has(p) && !intentFields.Leaves().Has(p) {
			t.Errorf("the fields lack %s", p)
		}
	}
	for _, p := range []fieldpath.Path{path("metadata", "name"), path("metadata", "namespace"), path("kind"), path("apiVersion"), path("status")} {
		if intentFields.Has(p) {
			t.Errorf("the fields contain %s, which no API server records", p)
		}
	}
}

func TestIntentFields_OfUnknownKindIsError(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}}}
	if _, err := drift.IntentFields(typer, u); err == nil {
		t.Error("no error")
	}
}

func TestPaths_ReturnsTenSortedPathsAndCountsOthers(t *testing.T) {
	set := fieldpath.NewSet()
	for i := range 14 {
		set.Insert(path("metadata", "labels", fmt.Sprintf("l%02d", i)))
	}
	got, omitted := drift.Paths(set)
	if len(got) != 10 || omitted != 4 || !slices.IsSorted(got) {
		t.Errorf("paths %q, %d omitted", got, omitted)
	}
}

func TestUnownedFields_IsEmptyAfterApply(t *testing.T) {
	intent, _, intentFields := statefulSet(t)
	live := intent.DeepCopy()
	live.SetManagedFields([]metav1.ManagedFieldsEntry{ours(intentFields)})
	if unowned := drift.UnownedFields(intentFields, live); !unowned.Empty() {
		t.Errorf("unowned fields %s", unowned)
	}
	var parsed drift.Fields
	raw, err := intentFields.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.FromJSON(bytes.NewReader(raw)); err != nil || !parsed.Equals(intentFields) {
		t.Errorf("the set differs after a round trip through JSON: %v", err)
	}
}

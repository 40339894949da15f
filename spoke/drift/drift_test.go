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

// statefulSet gives the intent of one, its hash, and the fields that we own of it.
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
			wanted, err := drift.IntentFields(typer, c.Intent)
			if err != nil {
				t.Fatal(err)
			}
			return c.Intent, c.Hash, wanted
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
	mark     = path("metadata", "annotations", v1alpha1.AnnotationIntent)
)

func without(set *drift.Fields, paths ...fieldpath.Path) *drift.Fields {
	return set.Difference(fieldpath.NewSet(paths...))
}

func entry(manager string, op metav1.ManagedFieldsOperationType, sub string, at time.Time, set *drift.Fields) metav1.ManagedFieldsEntry {
	raw, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	when := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, Subresource: sub, Time: &when, FieldsType: "FieldsV1", APIVersion: "apps/v1", FieldsV1: metav1.NewFieldsV1(string(raw))}
}

func ours(set *drift.Fields) metav1.ManagedFieldsEntry {
	return entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, "", noon.Add(-time.Hour), set)
}

func by(manager string, at time.Time, paths ...fieldpath.Path) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationUpdate, "", at, fieldpath.NewSet(paths...))
}

func TestDriftIsWhatOurEntryLacks(t *testing.T) {
	intent, hash, wanted := statefulSet(t)
	unreadable := by("kubectl-edit", noon, replicas)
	unreadable.FieldsV1 = metav1.NewFieldsV1(`{"nonsense":{}}`)
	ofNothing := by("kubectl-edit", noon, replicas)
	ofNothing.FieldsV1 = nil
	ofOurs := ours(wanted)
	ofOurs.FieldsV1 = metav1.NewFieldsV1(`{"nonsense":{}}`)
	for _, c := range []struct {
		name, why string
		mark      string
		entries   []metav1.ManagedFieldsEntry
		known     *drift.Fields
		changed   bool
		fields    []string
		manager   string
		at        time.Time
	}{
		{name: "nothing", why: "our entry holds all that we want", mark: hash, entries: []metav1.ManagedFieldsEntry{ours(wanted)}},
		{name: "kubectl scale", why: "the subresource's entry has the replicas now", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), entry("kubectl", metav1.ManagedFieldsOperationUpdate, "scale", noon, fieldpath.NewSet(replicas))},
			fields:  []string{"spec.replicas"}, manager: "kubectl", at: noon},
		{name: "the image", why: "an edit took it", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, image)), by("kubectl-edit", noon, image)},
			fields:  []string{`spec.template.spec.containers[name="memcached"].image`}, manager: "kubectl-edit", at: noon},
		{name: "a label that was removed", why: "nobody holds it, so nobody is named", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, label)), by("kubectl-edit", noon)},
			fields:  []string{"metadata.labels." + v1alpha1.LabelInstance}, manager: drift.Unknown},
		{name: "an env var of another", why: "what others add is theirs", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(wanted), by("injector", noon,
				path("spec", "template", "spec", "containers", named("memcached"), "env", named("DEBUG")))}},
		{name: "a field that two own", why: "sharing a value takes nothing from us", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(wanted), by("argocd", noon, replicas)}},
		{name: "our mark, changed by somebody", why: "the mark is a field like any other", mark: "forged",
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, mark)), by("kubectl-annotate", noon, mark)},
			fields:  []string{"metadata.annotations." + v1alpha1.AnnotationIntent}, manager: "kubectl-annotate", at: noon},
		{name: "our mark, removed", why: "it is drift, not a new wish", mark: "",
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, mark))},
			fields:  []string{"metadata.annotations." + v1alpha1.AnnotationIntent}, manager: drift.Unknown},
		{name: "a new wish", why: "the mark is ours and says another hash", mark: "older",
			entries: []metav1.ManagedFieldsEntry{ours(wanted)}, changed: true},
		{name: "a new wish over drift", why: "applying it puts everything right; it is not counted as drift", mark: "older",
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), by("kubectl-edit", noon, replicas)}, changed: true},
		{name: "two managers", why: "the later one is named", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas, image)), by("first", noon.Add(-time.Minute), replicas), by("second", noon, image)},
			fields:  []string{"spec.replicas", `spec.template.spec.containers[name="memcached"].image`}, manager: "second", at: noon},
		{name: "two managers, the later one first", why: "the order of entries says nothing", mark: hash,
			entries: []metav1.ManagedFieldsEntry{by("second", noon, image), by("first", noon.Add(-time.Minute), replicas), ours(without(wanted, replicas, image))},
			fields:  []string{"spec.replicas", `spec.template.spec.containers[name="memcached"].image`}, manager: "second", at: noon},
		{name: "a manager of something else", why: "only who holds a missing field did it", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), by("kubectl-edit", noon.Add(-time.Minute), replicas), by("controller", noon, path("status", "replicas"))},
			fields:  []string{"spec.replicas"}, manager: "kubectl-edit", at: noon.Add(-time.Minute)},
		{name: "our own name, as update", why: "a field that we patched back is ours", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), by(v1alpha1.FieldManager, noon, replicas)}},
		{name: "an entry that can't be read", why: "it owns nothing, so nobody is named", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), unreadable},
			fields:  []string{"spec.replicas"}, manager: drift.Unknown},
		{name: "an entry without fields", why: "it owns nothing", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas)), ofNothing},
			fields:  []string{"spec.replicas"}, manager: drift.Unknown},
		{name: "what our last apply did not get", why: "a member of another version keeps a set of another shape", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas))}, known: fieldpath.NewSet(replicas)},
		{name: "more than our last apply did not get", why: "the rest is drift", mark: hash,
			entries: []metav1.ManagedFieldsEntry{ours(without(wanted, replicas, image)), by("kubectl-edit", noon, image)}, known: fieldpath.NewSet(replicas),
			fields: []string{`spec.template.spec.containers[name="memcached"].image`}, manager: "kubectl-edit", at: noon},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := intent.DeepCopy()
			annotations := live.GetAnnotations()
			annotations[v1alpha1.AnnotationIntent] = c.mark
			live.SetAnnotations(annotations)
			live.SetManagedFields(c.entries)
			got := drift.Diff(wanted, hash, live, c.known)
			if got.IntentChanged != c.changed || got.Clean() != (!c.changed && len(c.fields) == 0) {
				t.Errorf("%s: changed %t, clean %t", c.why, got.IntentChanged, got.Clean())
			}
			if diff := cmp.Diff(c.fields, pathsOf(got.Fields)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s", c.why, diff)
			}
			if got.Fields == nil {
				return
			}
			if who := drift.Attribute(live, got.Fields); who.Manager != c.manager || !who.At.Equal(c.at) {
				t.Errorf("%s: by %q at %s, want %q at %s", c.why, who.Manager, who.At, c.manager, c.at)
			}
		})
	}

	t.Run("an entry of ours that can't be read", func(t *testing.T) {
		live := intent.DeepCopy()
		live.SetManagedFields([]metav1.ManagedFieldsEntry{ofOurs})
		if got := drift.Diff(wanted, hash, live, nil); got.Clean() {
			t.Error("it should cost one apply, and cost nothing")
		}
	})
}

func TestEveryFieldOfAnIntentIsWatchedAndItsNameIsNot(t *testing.T) {
	_, _, wanted := statefulSet(t)
	for _, p := range []fieldpath.Path{replicas, image, label, mark, path("spec", "selector"), path("spec", "serviceName")} {
		if !wanted.Has(p) && !wanted.Leaves().Has(p) {
			t.Errorf("%s is not wanted", p)
		}
	}
	for _, p := range []fieldpath.Path{path("metadata", "name"), path("metadata", "namespace"), path("kind"), path("apiVersion"), path("status")} {
		if wanted.Has(p) {
			t.Errorf("%s is wanted, which no API server puts under our name", p)
		}
	}
}

func TestAnIntentOfAnUnknownKindIsAnError(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}}}
	if _, err := drift.IntentFields(typer, u); err == nil {
		t.Error("no error")
	}
}

func TestAStatusShowsTenPathsSortedAndCountsTheRest(t *testing.T) {
	set := fieldpath.NewSet()
	for i := range 14 {
		set.Insert(path("metadata", "labels", fmt.Sprintf("l%02d", i)))
	}
	got, omitted := drift.Paths(set)
	if len(got) != 10 || omitted != 4 || !slices.IsSorted(got) {
		t.Errorf("paths %q, %d omitted", got, omitted)
	}
}

func TestMissingIsEmptyStraightAfterAnApply(t *testing.T) {
	intent, _, wanted := statefulSet(t)
	live := intent.DeepCopy()
	live.SetManagedFields([]metav1.ManagedFieldsEntry{ours(wanted)})
	if missing := drift.UnownedFields(wanted, live); !missing.Empty() {
		t.Errorf("missing %s", missing)
	}
	var back drift.Fields
	raw, err := wanted.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.FromJSON(bytes.NewReader(raw)); err != nil || !back.Equals(wanted) {
		t.Errorf("the set does not survive its own JSON: %v", err)
	}
}

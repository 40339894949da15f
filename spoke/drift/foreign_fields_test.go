package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func inTemplate(parts ...any) fieldpath.Path {
	return path(append([]any{"spec", "template"}, parts...)...)
}

func TestForeignFields_ReturnsFieldsOfOtherManagersInTemplate(t *testing.T) {
	intent, _, intentFields := statefulSet(t)
	sidecar := []fieldpath.Path{inTemplate("spec", "containers", named("sidecar")), inTemplate("spec", "containers", named("sidecar"), "name"), inTemplate("spec", "containers", named("sidecar"), "image")}
	debug := []fieldpath.Path{inTemplate("spec", "containers", named("memcached"), "env"), inTemplate("spec", "containers", named("memcached"), "env", named("DEBUG")),
		inTemplate("spec", "containers", named("memcached"), "env", named("DEBUG"), "name"), inTemplate("spec", "containers", named("memcached"), "env", named("DEBUG"), "value")}
	restart := []fieldpath.Path{inTemplate("metadata", "annotations"), inTemplate("metadata", "annotations", "kubectl.kubernetes.io/restartedAt")}
	policy := inTemplate("spec", "dnsPolicy")
	for _, c := range []struct {
		name, why string
		kind      string
		action    v1alpha1.ForeignAction
		rules     []v1alpha1.DriftIgnore
		entries   []metav1.ManagedFieldsEntry
		want      []string
	}{
		{name: "a sidecar", why: "an added list item is one field", entries: []metav1.ManagedFieldsEntry{by("injector", noon, sidecar...)}, want: []string{`spec.template.spec.containers[name="sidecar"]`}},
		{name: "an env var of our container", why: "the list is not foreign, only its item", entries: []metav1.ManagedFieldsEntry{by("kubectl-edit", noon, debug...)}, want: []string{containerPath + `.env[name="DEBUG"]`}},
		{name: "a single field", entries: []metav1.ManagedFieldsEntry{by("kubectl-edit", noon, policy)}, want: []string{"spec.template.spec.dnsPolicy"}},
		{name: "a rollout restart", why: "the annotation requests a restart", entries: []metav1.ManagedFieldsEntry{by("kubectl-rollout", noon, restart...)}},
		{name: "another annotation in addition to a rollout restart", why: "both managers own the map", entries: []metav1.ManagedFieldsEntry{by("kubectl-rollout", noon, restart...),
			by("injector", noon, inTemplate("metadata", "annotations"), inTemplate("metadata", "annotations", "example.org/x"))}, want: []string{"spec.template.metadata.annotations.example.org/x"}},
		{name: "a changed field of the intent", why: "a changed field is drift", entries: []metav1.ManagedFieldsEntry{by("kubectl-edit", noon, image)}},
		{name: "a shared field of the intent", why: "the hub owns the field", entries: []metav1.ManagedFieldsEntry{entry("argocd", metav1.ManagedFieldsOperationApply, "", noon, intentFields)}},
		{name: "fields outside of the template", why: "other managers can own these fields", entries: []metav1.ManagedFieldsEntry{by("kubectl-edit", noon, path("spec", "minReadySeconds"), path("metadata", "labels", "team"))}},
		{name: "the status", why: "the status belongs to a controller", entries: []metav1.ManagedFieldsEntry{entry("kcm", metav1.ManagedFieldsOperationUpdate, "status", noon, drift.NewFields(policy))}},
		{name: "a rule for the manager", rules: []v1alpha1.DriftIgnore{{Manager: "injector"}}, entries: []metav1.ManagedFieldsEntry{by("injector", noon, sidecar...), by("kubectl-edit", noon, policy)}, want: []string{"spec.template.spec.dnsPolicy"}},
		{name: "a rule for the path", rules: []v1alpha1.DriftIgnore{{Path: `spec.template.spec.containers[name="sidecar"]`}}, entries: []metav1.ManagedFieldsEntry{by("injector", noon, sidecar...)}},
		{name: "the policy Keep", why: "the policy keeps foreign fields", action: v1alpha1.ForeignKeep, entries: []metav1.ManagedFieldsEntry{by("injector", noon, sidecar...)}},
		{name: "a Service", why: "a Service has no pod template", kind: "Service", entries: []metav1.ManagedFieldsEntry{by("injector", noon, sidecar...)}},
		{name: "a default after the removal", why: "the API server restores a default", entries: []metav1.ManagedFieldsEntry{by(drift.Remover, noon, policy)}},
		{name: "a sidecar after the removal", why: "no API server has a default for one", entries: []metav1.ManagedFieldsEntry{by(drift.Remover, noon, sidecar...)}, want: []string{`spec.template.spec.containers[name="sidecar"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.action == "" {
				c.action = v1alpha1.ForeignRemove
			}
			if c.kind == "" {
				c.kind = "StatefulSet"
			}
			p, problems := drift.NewPolicy(&v1alpha1.Policies{Drift: &v1alpha1.DriftPolicy{Foreign: c.action, Ignore: c.rules}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			live := intent.DeepCopy()
			live.SetManagedFields(append([]metav1.ManagedFieldsEntry{ours(intentFields)}, c.entries...))
			if diff := cmp.Diff(c.want, pathsOf(p.ForeignFields(c.kind, intentFields, live))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestPruneTemplate_RemovesOnlyGivenFields(t *testing.T) {
	intent, _, _ := statefulSet(t)
	live := typedSet(t, intent)
	foreign := live.DeepCopy()
	foreign.Spec.Template.Spec.DNSPolicy = "Default"
	foreign.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now", "example.org/x": "y"}
	foreign.Spec.Template.Spec.Containers = append(foreign.Spec.Template.Spec.Containers, foreign.Spec.Template.Spec.Containers[0])
	foreign.Spec.Template.Spec.Containers[1].Name = "sidecar"
	foreign.Spec.Template.Spec.Volumes = append(foreign.Spec.Template.Spec.Volumes, foreign.Spec.Template.Spec.Volumes...)
	got, err := drift.PruneTemplate(typer, children.StatefulSetKind, foreign, drift.NewFields(
		inTemplate("spec", "containers", named("sidecar")), inTemplate("spec", "dnsPolicy"), inTemplate("metadata", "annotations", "example.org/x")))
	if err != nil {
		t.Fatal(err)
	}
	live.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	want, err := drift.PruneTemplate(typer, children.StatefulSetKind, live, drift.NewFields())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIgnoredFields_ContainReplicasWithinAutoscalerRange(t *testing.T) {
	intent, _, intentFields := statefulSet(t)
	for _, c := range []struct {
		name   string
		ranges []drift.Range
		is     int64
		by     []metav1.ManagedFieldsEntry
		want   []string
	}{
		{"no autoscaler", nil, 4, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, nil},
		{"within the range", []drift.Range{{Min: 2, Max: 5}}, 4, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, []string{"spec.replicas"}},
		{"at the minimum", []drift.Range{{Min: 2, Max: 5}}, 2, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, []string{"spec.replicas"}},
		{"at the maximum", []drift.Range{{Min: 2, Max: 5}}, 5, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, []string{"spec.replicas"}},
		{"below the range", []drift.Range{{Min: 2, Max: 5}}, 1, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, nil},
		{"above the range", []drift.Range{{Min: 2, Max: 5}}, 6, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, nil},
		{"within one of two ranges", []drift.Range{{Min: 1, Max: 2}, {Min: 6, Max: 9}}, 7, []metav1.ManagedFieldsEntry{by("kcm", noon, replicas)}, []string{"spec.replicas"}},
		{"within the range, without another owner", []drift.Range{{Min: 2, Max: 5}}, 4, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := typedSet(t, intent)
			n := int32(c.is)
			live.Spec.Replicas = &n
			live.ManagedFields = append([]metav1.ManagedFieldsEntry{ours(without(intentFields, replicas))}, c.by...)
			p := drift.Policy{Scalers: c.ranges}
			if diff := cmp.Diff(c.want, pathsOf(p.IgnoredFields("StatefulSet", intentFields, live))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package cli

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admission is a hub that answers dry runs only: a write fails the test. It accepts
// every object except those in refuses.
type admission struct {
	client.WithWatch
	t       *testing.T
	refuses map[string]error
	members []inventoryv1alpha1.ClusterProfile
	// forbidden refuses to list the members.
	forbidden bool
}

func (a *admission) Patch(_ context.Context, obj client.Object, _ client.Patch, opts ...client.PatchOption) error {
	var o client.PatchOptions
	o.ApplyOptions(opts)
	if len(o.DryRun) == 0 {
		a.t.Errorf("%s was written", obj.GetName())
	}
	return a.refuses[obj.GetName()]
}

func (a *admission) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if a.forbidden {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterprofiles"}, "", nil)
	}
	list.(*inventoryv1alpha1.ClusterProfileList).Items = a.members
	return nil
}

func documents(t *testing.T, specs ...string) []manifest {
	t.Helper()
	var all []string
	for i, spec := range specs {
		all = append(all, "apiVersion: cache.reconcile-lab.io/v1alpha1\nkind: CacheCluster\nmetadata: {name: "+string(rune('a'+i))+", namespace: shop}\nspec: {"+spec+"}\n")
	}
	manifests, err := readManifests([]string{"-"}, strings.NewReader(strings.Join(all, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

const everyone = "placement: {clusterSelector: {}}"

func TestValidate_RefusesWhatAdmissionAccepts(t *testing.T) {
	ignoring := func(path string) string { return everyone + ", drift: {ignore: [{path: '" + path + "'}]}" }
	small := everyone + ", memory: 1Gi, memcached: {maxItemSize: 64Mi}, overrides: [{clusterSelector: {matchLabels: {size: small}}, memory: 64Mi}]"
	for _, tc := range []struct {
		reason, spec string
		// says lists parts of the expected refusal; empty for none.
		says []string
	}{
		{"an ignored path with an empty step", ignoring("spec..replicas["), []string{"spec.drift.ignore[0].path", `"spec..replicas["`, "a field name is missing", "copy it from status.clusters[].lastDrift.fields"}},
		{"an ignored path with an open bracket", ignoring("spec["), []string{"spec.drift.ignore[0].path", `"spec["`}},
		{"an ignored path that ends in a dot", ignoring("spec.replicas."), []string{"spec.drift.ignore[0].path", `"spec.replicas."`}},
		{"an ignored path without a field", ignoring("foo"), []string{"spec.drift.ignore[0].path", `"foo"`}},
		{"an ignored path with a wildcard", ignoring("containers[*].image"), []string{"spec.drift.ignore[0].path", "containers[*].image"}},
		{"an ignored path without quotes", ignoring("containers[name=memcached].image"), []string{"spec.drift.ignore[0].path", "containers[name=memcached].image"}},
		{"an ignored path as the status prints it", ignoring(`spec.template.spec.containers[name="memcached"].image`), nil},
		{"a selector of the placement", "placement: {clusterSelector: {matchExpressions: [{key: size, operator: Near, values: [a]}]}}", []string{"spec.placement.clusterSelector", "Near", "use matchLabels"}},
		{"a selector of an override", everyone + ", overrides: [{clusterSelector: {matchExpressions: [{key: size, operator: In}]}, replicas: 1}]", []string{"spec.overrides[0].clusterSelector", "use matchLabels"}},
		{"an override that is invalid in the template of its member", small, []string{"spec.memcached.maxItemSize", `"64Mi"`, "at most half of memory", "after spec.overrides[0]"}},
		{"an override that selects no member", strings.Replace(small, "size: small", "size: tiny", 1), nil},
		{"an override that makes the template valid", everyone + ", memory: 64Mi, memcached: {maxItemSize: 64Mi}, overrides: [{clusterSelector: {}, memory: 1Gi}]", nil},
		{"a template that is invalid in every member", everyone + ", memory: 64Mi, memcached: {maxItemSize: 64Mi}", []string{"spec.memcached.maxItemSize"}},
		{"a valid spec", everyone, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hub := &hub{WithWatch: &admission{t: t, members: []inventoryv1alpha1.ClusterProfile{
				{ObjectMeta: metav1.ObjectMeta{Name: "member-1", Labels: map[string]string{"size": "small"}}},
				{ObjectMeta: metav1.ObjectMeta{Name: "member-2"}},
			}}}
			for _, missing := range [][]string{nil, {"shop"}} {
				err := hub.validate(t.Context(), documents(t, tc.spec), missing, false)
				if tc.says == nil {
					if err != nil {
						t.Errorf("refused: %v", err)
					}
					continue
				}
				if exitCode(err) != exitUsage {
					t.Fatalf("exit code %d (%v), want %d", exitCode(err), err, exitUsage)
				}
				for _, text := range append(tc.says, "document 1", "CacheCluster shop/a") {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q lacks %q", err, text)
					}
				}
			}
		})
	}
}

func TestValidate_ReportsAllProblemsAtOnce(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "CacheCluster"}, "a", nil)
	hub := &hub{WithWatch: &admission{t: t, forbidden: true, refuses: map[string]error{"a": refused}}}
	err := hub.validate(t.Context(), documents(t,
		everyone+", replicas: -1, drift: {ignore: [{path: 'spec['}]}",
		everyone,
		everyone+", drift: {ignore: [{path: foo}, {path: 'spec..replicas'}]}",
	), nil, false)
	if exitCode(err) != exitUsage {
		t.Fatalf("exit code %d (%v), want %d", exitCode(err), err, exitUsage)
	}
	lines := strings.Split(err.Error(), "\n")
	want := []struct{ cache, says string }{{"shop/a", "is invalid"}, {"shop/a", "spec.drift.ignore[0].path"}, {"shop/c", "spec.drift.ignore[0].path"}, {"shop/c", "spec.drift.ignore[1].path"}}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%v", len(lines), len(want), err)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w.cache) || !strings.Contains(lines[i], w.says) {
			t.Errorf("line %d is %q, want %s with %q", i, lines[i], w.cache, w.says)
		}
	}
}

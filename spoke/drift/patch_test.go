package drift

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestPatch_CorrectsFewScalarsOfSpec(t *testing.T) {
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
		"spec": map[string]any{
			"replicas": int64(3), "serviceName": "sessions", "minReadySeconds": int64(0),
			"template": map[string]any{"spec": map[string]any{"enableServiceLinks": false, "containers": []any{map[string]any{"name": "memcached", "image": "x"}}}},
			"selector": map[string]any{"app.kubernetes.io/name": "memcached"},
		},
	}}
	path := fieldpath.MakePathOrDie
	container := fieldpath.KeyByFields("name", "memcached")
	for _, c := range []struct {
		name    string
		drifted []fieldpath.Path
		want    string
	}{
		{"a number", []fieldpath.Path{path("spec", "replicas")}, `{"metadata":{"uid":"u"},"spec":{"replicas":3}}`},
		{"a zero", []fieldpath.Path{path("spec", "minReadySeconds")}, `{"metadata":{"uid":"u"},"spec":{"minReadySeconds":0}}`},
		{"two fields, one of them nested", []fieldpath.Path{path("spec", "replicas"), path("spec", "template", "spec", "enableServiceLinks")},
			`{"metadata":{"uid":"u"},"spec":{"replicas":3,"template":{"spec":{"enableServiceLinks":false}}}}`},
		{"a name with dots and a slash", []fieldpath.Path{path("spec", "selector", "app.kubernetes.io/name")},
			`{"metadata":{"uid":"u"},"spec":{"selector":{"app.kubernetes.io/name":"memcached"}}}`},
		{"a list item", []fieldpath.Path{path("spec", "template", "spec", "containers", container, "image")}, ""},
		{"a scalar and a list item", []fieldpath.Path{path("spec", "replicas"), path("spec", "template", "spec", "containers", container, "image")}, ""},
		{"a label of the hub, which an apply must be able to remove", []fieldpath.Path{path("metadata", "labels", "a")}, ""},
		{"a whole map", []fieldpath.Path{path("spec", "selector")}, ""},
		{"a field that the intent lacks", []fieldpath.Path{path("spec", "paused")}, ""},
		{"no fields", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var drifted *Fields
			if c.drifted != nil {
				drifted = fieldpath.NewSet(c.drifted...)
			}
			if got := string(Patch(intent, "u", drifted)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

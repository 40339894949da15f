package integration

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func cacheClusterYAML(name, spec string) string {
	return "apiVersion: cache.reconcile-lab.io/v1alpha1\nkind: CacheCluster\nmetadata: {name: \"" + name + "\", namespace: default}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ")
}

// admit asks the hub whether it would take an object; strict as kubectl is.
func admit(t *testing.T, manifest string) (*unstructured.Unstructured, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	return u, lab.Hub.Client.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

func TestAdmission_RefusesBadInputWithFix(t *testing.T) {
	t.Parallel()
	const everywhere = "\nplacement: {clusterSelector: {}}"
	for _, c := range []struct {
		name, object, spec string
		says               []string
	}{
		{"an unknown field", "sessions", "replcas: 2" + everywhere, []string{`unknown field "spec.replcas"`}},
		{"an unknown field below", "sessions", "memcached: {maxItems: 2}" + everywhere, []string{`unknown field "spec.memcached.maxItems"`}},
		{"another engine", "sessions", "engine: Mcrouter" + everywhere, []string{"spec.engine", `"Mcrouter"`, "Memcached"}},
		{"replicas below 0", "sessions", "replicas: -1" + everywhere, []string{"spec.replicas", "replicas must be 0 or more"}},
		{"replicas far above", "sessions", "replicas: 1001" + everywhere, []string{"spec.replicas", "at most 1000"}},
		{"memory that is no quantity", "sessions", "memory: lots" + everywhere, []string{"spec.memory"}},
		{"memory below what memcached takes", "sessions", "memory: 1Mi" + everywhere, []string{"spec.memory", "at least 8Mi"}},
		{"memory without a unit", "sessions", "memory: 64" + everywhere, []string{"spec.memory", "did you leave out the unit (64Mi)?"}},
		{"memory below 0", "sessions", "memory: -1Gi" + everywhere, []string{"spec.memory", "at least 8Mi"}},
		{"memory far above", "sessions", "memory: 5Ti" + everywhere, []string{"spec.memory", "at most 4Ti"}},
		{"items above half of memory", "sessions", "memory: 64Mi\nmemcached: {maxItemSize: 33Mi}" + everywhere, []string{"spec.memcached.maxItemSize", "at most half of memory"}},
		{"items without a unit", "sessions", "memcached: {maxItemSize: 1}" + everywhere, []string{"spec.memcached.maxItemSize", "between 1Ki and 1Gi"}},
		{"items below memcached's chunks", "sessions", "memcached: {maxItemSize: 100Ki}" + everywhere, []string{"spec.memcached.maxItemSize", "a multiple of 512Ki"}},
		{"items that are no multiple of chunks", "sessions", "memcached: {maxItemSize: 1280Ki}" + everywhere, []string{"spec.memcached.maxItemSize", "a multiple of 512Ki"}},
		{"a name too long for its children", strings.Repeat("a", 53), "placement: {clusterSelector: {}}", []string{"at most 52 characters"}},
		{"a name that begins with a digit", "1sessions", "placement: {clusterSelector: {}}", []string{"must begin with a letter"}},
		{"a name with a dot", "a.b", "placement: {clusterSelector: {}}", []string{"must begin with a letter and contain only"}},
		{"no placement", "sessions", "replicas: 1", []string{"spec.placement"}},
		{"an empty placement", "sessions", "placement: {}", []string{"an empty clusterSelector {} selects every member"}},
		{"an empty list of members", "sessions", "placement: {clusters: []}", []string{"spec.placement.clusters"}},
		{"a member twice", "sessions", "placement: {clusters: [a, a]}", []string{"spec.placement.clusters", "Duplicate"}},
		{"an argument that a field sets", "sessions", "memcached: {args: ['-m', '64']}" + everywhere, []string{"spec.memcached.args", "use memory"}},
		{"an argument glued to its value", "sessions", "memcached: {args: ['-m64']}" + everywhere, []string{"spec.memcached.args", "use memory"}},
		{"two arguments in one word", "sessions", "memcached: {args: ['-vm', '9999']}" + everywhere, []string{"spec.memcached.args", "use memory"}},
		{"a long argument that a field sets", "sessions", "memcached: {args: ['--max-item-size=1m']}" + everywhere, []string{"spec.memcached.args", "use memory"}},
		{"the port", "sessions", "memcached: {args: ['-p', '1']}" + everywhere, []string{"the port is always 11211"}},
		{"a version that is no tag", "sessions", "version: 'memcached:1.6'" + everywhere, []string{"spec.version", "image tag"}},
		{"an image with a scheme", "sessions", "image: https://mirror.example/memcached" + everywhere, []string{"spec.image", `"https://mirror.example/memcached"`, "no scheme"}},
		{"an image with a space", "sessions", "image: 'memcached: 1.6'" + everywhere, []string{"spec.image", "no spaces"}},
		{"an image in capitals", "sessions", "image: Memcached:1.6" + everywhere, []string{"spec.image", "in lower case"}},
		{"an exporter's image with a space", "sessions", "exporter: {enabled: true, image: 'a b'}" + everywhere, []string{"spec.exporter.image", "no spaces"}},
		{"an override's image without a name", "sessions", "overrides: [{clusters: [a], image: ':1.6'}]" + everywhere, []string{"spec.overrides[0].image", "must be a reference"}},
		{"an override without clusters", "sessions", "overrides: [{replicas: 1}]" + everywhere, []string{"an override must set clusters"}},
		{"an override's replicas below 0", "sessions", "overrides: [{clusters: [a], replicas: -1}]" + everywhere, []string{"replicas must be 0 or more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := admit(t, cacheClusterYAML(c.object, c.spec))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Errorf("not refused as bad input: %v", err)
			}
			contains(t, "the refusal", err.Error(), c.says...)
		})
	}
}

func TestAdmission_AcceptsLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"nothing but a placement":       {"sessions", "placement: {clusterSelector: {}}"},
		"the longest name":              {strings.Repeat("a", 52), "placement: {clusterSelector: {}}"},
		"no pods":                       {"sessions", "replicas: 0\nplacement: {clusterSelector: {}}"},
		"the least memory":              {"sessions", "memory: 8Mi\nplacement: {clusterSelector: {}}"},
		"memory in bytes":               {"sessions", "memory: 67108864\nplacement: {clusterSelector: {}}"},
		"items of half of memory":       {"sessions", "memory: 64Mi\nmemcached: {maxItemSize: 32Mi}\nplacement: {clusterSelector: {}}"},
		"items of three chunks":         {"sessions", "memcached: {maxItemSize: 1.5Mi}\nplacement: {clusterSelector: {}}"},
		"items of chunks of one's own":  {"sessions", "memcached: {maxItemSize: 100Ki, extended: [slab_chunk_max=16]}\nplacement: {clusterSelector: {}}"},
		"arguments that no field sets":  {"sessions", "memcached: {args: ['-u', '11211', '-vv', '-ucache', '--max-reqs-per-event=5']}\nplacement: {clusterSelector: {}}"},
		"an image by digest":            {"sessions", "image: '[fd00::1]:5000/a/b__c/memcached:1.6@sha256:" + strings.Repeat("0f", 32) + "'\nplacement: {clusterSelector: {}}"},
		"an image of a local registry":  {"sessions", "image: localhost:5000/memcached\nplacement: {clusterSelector: {}}"},
		"no image":                      {"sessions", "image: ''\nplacement: {clusterSelector: {}}"},
		"members by name and by labels": {"sessions", "placement: {clusters: [a], clusterSelector: {matchLabels: {tier: lab}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := admit(t, cacheClusterYAML(c[0], c[1])); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAdmission_StoresExamplesUnchanged(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"shop", "mimir"} {
		mustCreate(t, lab.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
			for {
				document, err := documents.Read()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var written map[string]any
				if err := yaml.Unmarshal(document, &written); err != nil || len(written) == 0 {
					continue
				}
				stored, err := admit(t, string(document))
				if err != nil {
					t.Fatal(err)
				}
				subset(t, "spec", written["spec"], stored.Object["spec"])
			}
		})
	}
}

// subset checks that everything that was written is stored as it was; defaults may
// have come in.
func subset(t *testing.T, path string, written, stored any) {
	t.Helper()
	switch w := written.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		if !ok {
			t.Errorf("%s: %v was stored as %v", path, written, stored)
			return
		}
		for key, value := range w {
			subset(t, path+"."+key, value, s[key])
		}
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) != len(w) {
			t.Errorf("%s: %v was stored as %v", path, written, stored)
			return
		}
		for i := range w {
			subset(t, path, w[i], s[i])
		}
	case float64:
		if n, ok := stored.(int64); !ok || float64(n) != w {
			t.Errorf("%s: %v was stored as %v", path, written, stored)
		}
	default:
		if written != stored {
			t.Errorf("%s: %v was stored as %v", path, written, stored)
		}
	}
}

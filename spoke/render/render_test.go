package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func quantity(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }

func memberCache(name string, t v1alpha1.CacheTemplate) *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + ".member-1", Namespace: "shop", UID: "uid-of-the-membercache",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CacheCluster",
				Name: name, UID: "uid-of-the-cachecluster", Controller: ptr.To(true)}},
		},
		Spec: v1alpha1.MemberCacheSpec{CacheCluster: name, CacheClusterUID: "uid-of-the-cachecluster", Cluster: "member-1", Revision: "r1", Template: t},
	}
}

// mimir is a cache of Grafana Mimir's "large" sizing.
func mimir(memory, item string, replicas int32, extended ...string) v1alpha1.CacheTemplate {
	return v1alpha1.CacheTemplate{
		Replicas: &replicas, Memory: quantity(memory),
		Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: quantity(item), MaxConnections: ptr.To[int32](16384),
			Extended: extended, Args: []string{"-u", "11211", "-v"}},
		Resources: &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
		Exporter:  &v1alpha1.ExporterSpec{Enabled: true},
	}
}

func everything() v1alpha1.CacheTemplate {
	return v1alpha1.CacheTemplate{
		Engine: v1alpha1.EngineMemcached, Version: "1.6.39", Image: "registry.example/memcached:1.6.39",
		Replicas: ptr.To[int32](5), Memory: quantity("1Gi"),
		Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: quantity("512Ki"), MaxConnections: ptr.To[int32](2048),
			Threads: ptr.To[int32](8), Extended: []string{"modern", "track_sizes"}, Args: []string{"-v"}},
		Resources: &v1alpha1.Resources{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		Exporter: &v1alpha1.ExporterSpec{Enabled: true, Image: "registry.example/exporter:1",
			Resources: &v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}}},
		Service: &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP, Annotations: map[string]string{"example.org/team": "checkout"}},
		Pod: &v1alpha1.PodSpec{
			MinReadySeconds: 60, Management: v1alpha1.PodManagementOrderedReady, PriorityClassName: "high",
			NodeSelector:    map[string]string{"disk": "none"},
			Tolerations:     []corev1.Toleration{{Key: "cache", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](11211)},
			Labels:          map[string]string{"team": "checkout"}, Annotations: map[string]string{"example.org/scrape": "true"},
		},
	}
}

func TestRender_MatchesGoldenFiles(t *testing.T) {
	withExporter := v1alpha1.CacheTemplate{Exporter: &v1alpha1.ExporterSpec{Enabled: true}}
	for name, template := range map[string]v1alpha1.CacheTemplate{
		"defaults":       {},
		"everything":     everything(),
		"exporter":       withExporter,
		"clusterip":      {Service: &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}},
		"storage":        withStorage(),
		"chunks-cache":   mimir("8Gi", "1Mi", 4, "modern", "track_sizes"),
		"index-cache":    mimir("2Gi", "5Mi", 3, "modern"),
		"metadata-cache": metadataCache(),
		"results-cache":  mimir("1Gi", "5Mi", 4, "modern"),
	} {
		t.Run(name, func(t *testing.T) {
			got := asYAML(t, render(t, memberCache(name, template)))
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v: write it with go test ./spoke/render -update, and read it", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("children (-%s +rendered):\n%s", golden, diff)
			}
		})
	}
}

func withStorage() v1alpha1.CacheTemplate {
	return v1alpha1.CacheTemplate{
		Memcached: &v1alpha1.MemcachedSpec{Extended: []string{"ext_path=/data/extstore:8G"}},
		Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("10Gi"), StorageClassName: ptr.To("fast"),
			WhenDeleted: v1alpha1.ClaimRetain, WhenScaled: v1alpha1.ClaimDelete},
	}
}

func TestRender_RetainsClaimsByDefault(t *testing.T) {
	template := withStorage()
	template.Storage.WhenDeleted, template.Storage.WhenScaled, template.Storage.StorageClassName = "", "", nil
	set := find(t, render(t, memberCache("sessions", template)), "StatefulSet", "sessions")
	if diff := cmp.Diff(map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"}, at(set, "spec", "persistentVolumeClaimRetentionPolicy")); diff != "" {
		t.Errorf("retention (-want +got):\n%s", diff)
	}
	claims := at(set, "spec", "volumeClaimTemplates").([]any)
	if _, named := claims[0].(map[string]any)["spec"].(map[string]any)["storageClassName"]; named {
		t.Error("a class that was left out is named, which is not the member's default")
	}
}

func metadataCache() v1alpha1.CacheTemplate {
	template := mimir("512Mi", "1Mi", 3, "modern")
	template.Pod = &v1alpha1.PodSpec{MinReadySeconds: 60}
	return template
}

// The values of Mimir's chart, one by one. A golden file that was updated without a review
// would not detect a wrong one.
func TestRender_MatchesMimirChart(t *testing.T) {
	for _, c := range []struct {
		name     string
		template v1alpha1.CacheTemplate
		replicas int64
		args     []any
		memory   string
		ready    int64
	}{
		{"chunks-cache", mimir("8Gi", "1Mi", 4, "modern", "track_sizes"), 4,
			[]any{"-m", "8192", "-I", "1m", "-c", "16384", "--extended=modern,track_sizes", "-u", "11211", "-v"}, "9830Mi", 0},
		{"index-cache", mimir("2Gi", "5Mi", 3, "modern"), 3,
			[]any{"-m", "2048", "-I", "5m", "-c", "16384", "--extended=modern", "-u", "11211", "-v"}, "2458Mi", 0},
		{"metadata-cache", metadataCache(), 3,
			[]any{"-m", "512", "-I", "1m", "-c", "16384", "--extended=modern", "-u", "11211", "-v"}, "614Mi", 60},
		{"results-cache", mimir("1Gi", "5Mi", 4, "modern"), 4,
			[]any{"-m", "1024", "-I", "5m", "-c", "16384", "--extended=modern", "-u", "11211", "-v"}, "1229Mi", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			children := render(t, memberCache(c.name, c.template))
			set, service, budget := find(t, children, "StatefulSet", c.name), find(t, children, "Service", c.name), find(t, children, "PodDisruptionBudget", c.name)
			template := at(set, "spec", "template", "spec")
			cache, exporter := container(t, set, "memcached"), container(t, set, "exporter")
			for what, pair := range map[string][2]any{
				"replicas":             {at(set, "spec", "replicas"), c.replicas},
				"pod management":       {at(set, "spec", "podManagementPolicy"), "Parallel"},
				"update strategy":      {at(set, "spec", "updateStrategy", "type"), "RollingUpdate"},
				"minReadySeconds":      {at(set, "spec", "minReadySeconds"), orNil(c.ready)},
				"command line":         {cache["args"], c.args},
				"image":                {cache["image"], "memcached:1.6"},
				"port":                 {cache["ports"], []any{map[string]any{"name": "client", "containerPort": int64(11211), "protocol": "TCP"}}},
				"resources":            {cache["resources"], map[string]any{"requests": map[string]any{"cpu": "500m", "memory": c.memory}, "limits": map[string]any{"memory": c.memory}}},
				"container security":   {cache["securityContext"], map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}},
				"exporter's security":  {exporter["securityContext"], cache["securityContext"]},
				"pod security":         {template.(map[string]any)["securityContext"], map[string]any{"runAsNonRoot": true, "runAsUser": int64(10001), "runAsGroup": int64(10001), "fsGroup": int64(10001), "seccompProfile": map[string]any{"type": "RuntimeDefault"}}},
				"exporter's port":      {exporter["ports"], []any{map[string]any{"name": "http-metrics", "containerPort": int64(9150), "protocol": "TCP"}}},
				"exporter's resources": {exporter["resources"], map[string]any{"requests": map[string]any{"cpu": "50m", "memory": "50Mi"}, "limits": map[string]any{"memory": "250Mi"}}},
				"headless":             {at(service, "spec", "clusterIP"), "None"},
				"Service's ports": {at(service, "spec", "ports"), []any{
					map[string]any{"name": "client", "port": int64(11211), "protocol": "TCP", "targetPort": "client"},
					map[string]any{"name": "http-metrics", "port": int64(9150), "protocol": "TCP", "targetPort": "http-metrics"}}},
				"budget": {at(budget, "spec", "maxUnavailable"), int64(1)},
			} {
				if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
					t.Errorf("%s (-chart +rendered):\n%s", what, diff)
				}
			}
		})
	}
}

func TestItemSize_UsesLargestExactUnit(t *testing.T) {
	for bytes, want := range map[int64]string{1 << 20: "1m", 5 << 20: "5m", 1 << 30: "1024m", 512 << 10: "512k", 1536 << 10: "1536k", 1 << 10: "1k", 1_000_000: "1000000"} {
		if got := itemSize(bytes); got != want {
			t.Errorf("itemSize(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestRender_UsesMemoryLimitAsRequest(t *testing.T) {
	set := find(t, render(t, memberCache("sessions", v1alpha1.CacheTemplate{Memory: quantity("64Mi"),
		Resources: &v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}}})), "StatefulSet", "sessions")
	want := map[string]any{"requests": map[string]any{"memory": "128Mi"}, "limits": map[string]any{"memory": "128Mi"}}
	if diff := cmp.Diff(want, container(t, set, "memcached")["resources"]); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestRender_OrdersServicesFirst(t *testing.T) {
	var kinds []string
	for _, c := range render(t, memberCache("sessions", everything())) {
		kinds = append(kinds, c.Intent.GetKind())
	}
	if diff := cmp.Diff([]string{"Service", "Service", "StatefulSet", "PodDisruptionBudget"}, kinds); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestRender_MarksOwnerAndHash(t *testing.T) {
	for _, c := range render(t, memberCache("sessions", everything())) {
		if got := c.Intent.GetAnnotations()[v1alpha1.AnnotationOwner]; got != "uid-of-the-cachecluster/member-1" {
			t.Errorf("%s: owner %q", c.Intent.GetKind(), got)
		}
		if got := c.Intent.GetAnnotations()[v1alpha1.AnnotationIntent]; got != c.Hash || got == "" {
			t.Errorf("%s: mark %q, hash %q", c.Intent.GetKind(), got, c.Hash)
		}
		for key, value := range children.Labels("sessions", "member-1") {
			if c.Intent.GetLabels()[key] != value {
				t.Errorf("%s lacks label %s=%s", c.Intent.GetKind(), key, value)
			}
		}
	}
}

func TestRender_IsDeterministic(t *testing.T) {
	mc := memberCache("sessions", everything())
	before := mc.DeepCopy()
	first, second := asYAML(t, render(t, mc)), asYAML(t, render(t, mc))
	if !bytes.Equal(first, second) {
		t.Error("two renderings differ")
	}
	if diff := cmp.Diff(before, mc); diff != "" {
		t.Errorf("the MemberCache was changed (-before +after):\n%s", diff)
	}
}

func TestRender_HashChangesWithIntent(t *testing.T) {
	base := render(t, memberCache("sessions", everything()))
	for name, change := range map[string]func(*v1alpha1.MemberCache){
		"nothing":                   func(*v1alpha1.MemberCache) {},
		"a revision":                func(mc *v1alpha1.MemberCache) { mc.Spec.Revision = "r2" },
		"a label of the object":     func(mc *v1alpha1.MemberCache) { mc.Labels = map[string]string{"x": "y"} },
		"another spelling":          func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Memory = quantity("1024Mi") },
		"replicas":                  func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Replicas = ptr.To[int32](6) },
		"the image":                 func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Image = "memcached:2" },
		"the version, with image":   func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Version = "1.7" },
		"an argument":               func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Memcached.Args = []string{"-vv"} },
		"annotations of Services":   func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Service.Annotations = nil },
		"the owner":                 func(mc *v1alpha1.MemberCache) { mc.Spec.CacheClusterUID = "another" },
		"the size of the volumes":   func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Storage = withStorage().Storage },
		"a pod label":               func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Pod.Labels["team"] = "search" },
		"the exporter being absent": func(mc *v1alpha1.MemberCache) { mc.Spec.Template.Exporter = nil },
	} {
		t.Run(name, func(t *testing.T) {
			mc := memberCache("sessions", everything())
			change(mc)
			for i, c := range render(t, mc) {
				// The mark itself is left out: it is what is tested.
				one, other := base[i].Intent.DeepCopy(), c.Intent.DeepCopy()
				unstructured.RemoveNestedField(one.Object, "metadata", "annotations", v1alpha1.AnnotationIntent)
				unstructured.RemoveNestedField(other.Object, "metadata", "annotations", v1alpha1.AnnotationIntent)
				same := cmp.Equal(one, other)
				if (base[i].Hash == c.Hash) != same {
					t.Errorf("%s/%s: intents equal %t, hashes equal %t", c.Intent.GetKind(), c.Intent.GetName(), same, base[i].Hash == c.Hash)
				}
			}
		})
	}
}

func render(t *testing.T, mc *v1alpha1.MemberCache) []Child {
	t.Helper()
	children, problems := Render(mc)
	if len(problems) > 0 {
		t.Fatalf("cannot be rendered: %v", problems)
	}
	return children
}

func asYAML(t *testing.T, children []Child) []byte {
	t.Helper()
	var out bytes.Buffer
	for i, c := range children {
		raw, err := yaml.Marshal(c.Intent.Object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes()
}

func find(t *testing.T, children []Child, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, c := range children {
		if c.Intent.GetKind() == kind && c.Intent.GetName() == name {
			return c.Intent
		}
	}
	t.Fatalf("no %s/%s among the children", kind, name)
	return nil
}

func container(t *testing.T, set *unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	all, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c := c.(map[string]any); c["name"] == name {
			return c
		}
	}
	t.Fatalf("no container %s", name)
	return nil
}

func at(u *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return value
}

func orNil(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// Package examples_test tests the examples.
package examples_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// read returns the CacheClusters of a file; an unknown field fails the test.
func read(t *testing.T, path string) []v1alpha1.CacheCluster {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []v1alpha1.CacheCluster
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var cc v1alpha1.CacheCluster
		if err := yaml.UnmarshalStrict(document, &cc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		// A file that begins with a comment has a first document of nothing else.
		if cc.Kind != "" {
			all = append(all, cc)
		}
	}
}

// children returns the children of cc in a member without overrides.
func children(t *testing.T, cc *v1alpha1.CacheCluster) (set appsv1.StatefulSet, services []corev1.Service, budget policyv1.PodDisruptionBudget) {
	t.Helper()
	rendered, problems := render.Render(&v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Name: cc.Name + ".member-1", Namespace: cc.Namespace},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: cc.Name, Cluster: "member-1", Template: cc.Spec.CacheTemplate},
	})
	if len(problems) > 0 {
		t.Fatalf("%s cannot be rendered: %v", cc.Name, problems)
	}
	for _, child := range rendered {
		var into any
		switch child.Intent.GetKind() {
		case "StatefulSet":
			into = &set
		case "PodDisruptionBudget":
			into = &budget
		case "Service":
			services = append(services, corev1.Service{})
			into = &services[len(services)-1]
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Intent.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	return set, services, budget
}

func TestExamples_Render(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		caches := read(t, file)
		if len(caches) == 0 {
			t.Errorf("%s has no CacheCluster", file)
		}
		for _, cc := range caches {
			t.Run(file+" "+cc.Name, func(t *testing.T) {
				if cc.Namespace == "" {
					t.Error("the example has no namespace; set metadata.namespace")
				}
				children(t, &cc)
			})
		}
	}
}

// The values are those of Mimir's Helm chart for its large sizing.
func TestMimirCaches_MatchTheHelmChart(t *testing.T) {
	want := map[string]struct {
		replicas        int32
		args            string
		memory          string
		minReadySeconds int32
	}{
		"chunks-cache":   {4, "-m 8192 -I 1m -c 16384 --extended=modern,track_sizes -u 11211 -v", "9830Mi", 0},
		"index-cache":    {3, "-m 2048 -I 5m -c 16384 --extended=modern -u 11211 -v", "2458Mi", 0},
		"metadata-cache": {3, "-m 512 -I 1m -c 16384 --extended=modern -u 11211 -v", "614Mi", 60},
		"results-cache":  {4, "-m 1024 -I 5m -c 16384 --extended=modern -u 11211 -v", "1229Mi", 0},
	}
	caches := read(t, "mimir-caches.yaml")
	if len(caches) != len(want) {
		t.Fatalf("%d caches, want %d", len(caches), len(want))
	}
	for _, cc := range caches {
		t.Run(cc.Name, func(t *testing.T) {
			w, known := want[cc.Name]
			if !known {
				t.Fatal("unexpected cache")
			}
			set, services, budget := children(t, &cc)
			equal := func(what string, got, want any) {
				t.Helper()
				if got != want {
					t.Errorf("%s is %v, want %v", what, got, want)
				}
			}

			equal("replicas", *set.Spec.Replicas, w.replicas)
			equal("minReadySeconds", set.Spec.MinReadySeconds, w.minReadySeconds)
			equal("podManagementPolicy", set.Spec.PodManagementPolicy, appsv1.ParallelPodManagement)
			equal("updateStrategy", set.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)

			pod := set.Spec.Template.Spec
			if len(pod.Containers) != 2 {
				t.Fatalf("%d containers, want memcached and its exporter", len(pod.Containers))
			}
			cache, exporter := pod.Containers[0], pod.Containers[1]
			equal("container", cache.Name, "memcached")
			equal("args", strings.Join(cache.Args, " "), w.args)
			equal("memory request", cache.Resources.Requests.Memory().String(), w.memory)
			equal("memory limit", cache.Resources.Limits.Memory().String(), w.memory)
			equal("CPU request", cache.Resources.Requests.Cpu().String(), "500m")
			equal("port", cache.Ports[0].Name+" "+portOf(cache), "client 11211")
			equal("exporter's port", exporter.Ports[0].Name+" "+portOf(exporter), "http-metrics 9150")
			equal("exporter's requests", exporter.Resources.Requests.Cpu().String()+" "+exporter.Resources.Requests.Memory().String(), "50m 50Mi")
			equal("exporter's memory limit", exporter.Resources.Limits.Memory().String(), "250Mi")
			if !strings.HasPrefix(exporter.Image, "prom/memcached-exporter:") {
				t.Errorf("exporter's image is %s", exporter.Image)
			}

			equal("runAsNonRoot", *pod.SecurityContext.RunAsNonRoot, true)
			equal("runAsUser", *pod.SecurityContext.RunAsUser, int64(10001))
			equal("runAsGroup", *pod.SecurityContext.RunAsGroup, int64(10001))
			equal("fsGroup", *pod.SecurityContext.FSGroup, int64(10001))
			equal("seccomp", pod.SecurityContext.SeccompProfile.Type, corev1.SeccompProfileTypeRuntimeDefault)
			for _, c := range pod.Containers {
				equal(c.Name+": privilege escalation", *c.SecurityContext.AllowPrivilegeEscalation, false)
				equal(c.Name+": read-only root", *c.SecurityContext.ReadOnlyRootFilesystem, true)
				if drop := c.SecurityContext.Capabilities.Drop; len(drop) != 1 || drop[0] != "ALL" {
					t.Errorf("%s drops %v, want ALL", c.Name, drop)
				}
			}

			if len(services) != 1 {
				t.Fatalf("%d Services, want the headless one", len(services))
			}
			equal("Service's clusterIP", services[0].Spec.ClusterIP, corev1.ClusterIPNone)
			equal("Service's ports", len(services[0].Spec.Ports), 2)
			equal("maxUnavailable", budget.Spec.MaxUnavailable.String(), "1")
		})
	}
}

// One override reduces the memory for kind clusters.
func TestMimirCaches_AreSmallOnKind(t *testing.T) {
	caches := read(t, "mimir-caches.yaml")
	if len(caches) != 4 {
		t.Fatalf("%d caches, want 4", len(caches))
	}
	for _, cc := range caches {
		if len(cc.Spec.Overrides) != 1 {
			t.Fatalf("%s has %d overrides, want one", cc.Name, len(cc.Spec.Overrides))
		}
		o := cc.Spec.Overrides[0]
		if o.ClusterSelector == nil || o.ClusterSelector.MatchLabels[v1alpha1.LabelProvider] != "kind" {
			t.Errorf("%s: the override selects %v, want kind clusters", cc.Name, o.ClusterSelector)
		}
		if o.Memory == nil || o.Memory.String() != "64Mi" {
			t.Errorf("%s: memory on kind is %v, want 64Mi", cc.Name, o.Memory)
		}
	}
}

func portOf(c corev1.Container) string { return strconv.Itoa(int(c.Ports[0].ContainerPort)) }

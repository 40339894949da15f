package render

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Defaults that the API server also sets; they are repeated here so that an
// object written before a default existed renders all the same.
const (
	defaultVersion        = "1.6"
	defaultExporterImage  = "prom/memcached-exporter:v0.15.5"
	defaultMaxConnections = 1024
	defaultReplicas       = 1

	clientPort  = 11211
	metricsPort = 9150
	cacheUser   = 10001
)

var (
	defaultMemory      = resource.MustParse("64Mi")
	defaultMaxItemSize = resource.MustParse("1Mi")
)

// input is a template with every default filled in and every figure derived.
type input struct {
	name, namespace, owner, cluster string
	image                           string
	replicas                        int32
	memoryMiB                       int64
	args                            []string
	resources                       v1alpha1.Resources
	exporter                        *v1alpha1.ExporterSpec
	serviceAnnotations              map[string]string
	clientService                   bool
	storage                         *v1alpha1.StorageSpec
	pod                             v1alpha1.PodSpec
}

func newInput(mc *v1alpha1.MemberCache) input {
	t := mc.Spec.Template
	in := input{
		name: mc.Spec.CacheCluster, namespace: mc.Namespace, owner: OwnerMark(mc), cluster: mc.Spec.Cluster,
		image:     t.Image,
		replicas:  ptr.Deref(t.Replicas, defaultReplicas),
		memoryMiB: MemoryMiB(&t),
		args:      arguments(&t),
		storage:   t.Storage,
		pod:       ptr.Deref(t.Pod, v1alpha1.PodSpec{}),
	}
	if in.image == "" {
		in.image = "memcached:" + cmp.Or(t.Version, defaultVersion)
	}
	if in.pod.Management == "" {
		in.pod.Management = v1alpha1.PodManagementParallel
	}
	in.resources = cacheResources(t.Resources, in.memoryMiB)
	if t.Exporter != nil && t.Exporter.Enabled {
		in.exporter = exporter(t.Exporter)
	}
	if t.Service != nil {
		in.serviceAnnotations = t.Service.Annotations
		in.clientService = t.Service.Type == v1alpha1.ServiceClusterIP
	}
	return in
}

// MemoryMiB is memcached's -m: the template's memory in whole MiB.
func MemoryMiB(t *v1alpha1.CacheTemplate) int64 {
	memory := ptr.Deref(t.Memory, defaultMemory)
	return memory.Value() >> 20
}

// LimitMiB is the container's memory for memoryMiB of cache: 1.2 times as much,
// rounded to the nearest MiB, for the hash table and the connections. The factor
// is that of Grafana Mimir's Helm chart.
func LimitMiB(memoryMiB int64) int64 { return (memoryMiB*12 + 5) / 10 }

func arguments(t *v1alpha1.CacheTemplate) []string {
	m := ptr.Deref(t.Memcached, v1alpha1.MemcachedSpec{})
	item := ptr.Deref(m.MaxItemSize, defaultMaxItemSize)
	args := []string{
		"-m", strconv.FormatInt(MemoryMiB(t), 10),
		"-I", itemSize(item.Value()),
		"-c", strconv.Itoa(int(ptr.Deref(m.MaxConnections, defaultMaxConnections))),
	}
	if m.Threads != nil {
		args = append(args, "-t", strconv.Itoa(int(*m.Threads)))
	}
	if len(m.Extended) > 0 {
		args = append(args, "--extended="+strings.Join(m.Extended, ","))
	}
	return append(args, m.Args...)
}

// itemSize writes bytes in the largest unit of memcached's -I that is exact.
func itemSize(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return strconv.FormatInt(bytes>>20, 10) + "m"
	case bytes%(1<<10) == 0:
		return strconv.FormatInt(bytes>>10, 10) + "k"
	default:
		return strconv.FormatInt(bytes, 10)
	}
}

// cacheResources are those of the cache container: the user's entries over memory
// that derives from the cache's, a limit of the user's being the request too.
func cacheResources(r *v1alpha1.Resources, memoryMiB int64) v1alpha1.Resources {
	limit := mebibytes(LimitMiB(memoryMiB))
	out := v1alpha1.Resources{
		Requests: corev1.ResourceList{corev1.ResourceMemory: limit},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: limit.DeepCopy()},
	}
	if r != nil {
		maps.Copy(out.Limits, r.Limits)
		out.Requests[corev1.ResourceMemory] = out.Limits[corev1.ResourceMemory]
		maps.Copy(out.Requests, r.Requests)
	}
	return out
}

// mebibytes keeps figures in Mi, where Quantity would turn 2048Mi into 2Gi.
func mebibytes(n int64) resource.Quantity {
	return resource.MustParse(strconv.FormatInt(n, 10) + "Mi")
}

func exporter(e *v1alpha1.ExporterSpec) *v1alpha1.ExporterSpec {
	out := e.DeepCopy()
	out.Image = cmp.Or(out.Image, defaultExporterImage)
	if out.Resources == nil {
		out.Resources = &v1alpha1.Resources{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("50m"),
				corev1.ResourceMemory: resource.MustParse("50Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("250Mi")},
		}
	}
	return out
}

package render

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
	pod                             v1alpha1.PodSpec
}

func newInput(mc *v1alpha1.MemberCache) input {
	t := mc.Spec.Template
	in := input{
		name: mc.Spec.CacheCluster, namespace: mc.Namespace, owner: OwnerMark(mc), cluster: mc.Spec.Cluster,
		image:     t.Image,
		replicas:  valueOr(t.Replicas, defaultReplicas),
		memoryMiB: MemoryMiB(&t),
		args:      arguments(&t),
		pod:       valueOr(t.Pod, v1alpha1.PodSpec{}),
	}
	if in.image == "" {
		in.image = "memcached:" + stringOr(t.Version, defaultVersion)
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
	memory := valueOr(t.Memory, defaultMemory)
	return memory.Value() >> 20
}

// LimitMiB is the container's memory for memoryMiB of cache: 1.2 times as much,
// rounded to the nearest MiB, for the hash table and the connections. The factor
// is that of Grafana Mimir's Helm chart.
func LimitMiB(memoryMiB int64) int64 { return (memoryMiB*12 + 5) / 10 }

func arguments(t *v1alpha1.CacheTemplate) []string {
	m := valueOr(t.Memcached, v1alpha1.MemcachedSpec{})
	item := valueOr(m.MaxItemSize, defaultMaxItemSize)
	args := []string{
		"-m", strconv.FormatInt(MemoryMiB(t), 10),
		"-I", itemSize(item.Value()),
		"-c", strconv.Itoa(int(valueOr(m.MaxConnections, defaultMaxConnections))),
	}
	if m.Threads != nil {
		args = append(args, "-t", strconv.Itoa(int(*m.Threads)))
	}
	if len(m.Extended) > 0 {
		extended := m.Extended[0]
		for _, e := range m.Extended[1:] {
			extended += "," + e
		}
		args = append(args, "--extended="+extended)
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

func cacheResources(r *v1alpha1.Resources, memoryMiB int64) v1alpha1.Resources {
	limit := resource.NewQuantity(LimitMiB(memoryMiB)<<20, resource.BinarySI)
	out := v1alpha1.Resources{
		Requests: corev1.ResourceList{corev1.ResourceMemory: mebibytes(limit)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: mebibytes(limit)},
	}
	if r != nil {
		for name, q := range r.Limits {
			out.Limits[name] = q
			if name == corev1.ResourceMemory {
				out.Requests[name] = q
			}
		}
		for name, q := range r.Requests {
			out.Requests[name] = q
		}
	}
	return out
}

// mebibytes keeps figures in Mi, where Quantity would turn 2048Mi into 2Gi.
func mebibytes(q *resource.Quantity) resource.Quantity {
	return resource.MustParse(strconv.FormatInt(q.Value()>>20, 10) + "Mi")
}

func exporter(e *v1alpha1.ExporterSpec) *v1alpha1.ExporterSpec {
	out := e.DeepCopy()
	out.Image = stringOr(out.Image, defaultExporterImage)
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

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func stringOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

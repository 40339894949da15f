package render

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

// Defaults, which the API server also sets. They are repeated here because an object can
// be older than a default.
const (
	defaultVersion        = "1.6"
	defaultExporterImage  = "prom/memcached-exporter:v0.15.5"
	defaultMaxConnections = 1024
	defaultReplicas       = 1

	clientPort  = 11211
	metricsPort = 9150
	cacheUser   = 10001
)

var defaultMaxItemSize = resource.MustParse("1Mi")

// input is a template with every default applied and every derived value.
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
		name: mc.Spec.CacheCluster, namespace: mc.Namespace, owner: children.OwnerMark(mc), cluster: mc.Spec.Cluster,
		image:     t.Image,
		replicas:  ptr.Deref(t.Replicas, defaultReplicas),
		memoryMiB: children.MemoryMiB(&t),
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
	in.resources = children.Resources(t.Resources, in.memoryMiB)
	if t.Exporter != nil && t.Exporter.Enabled {
		in.exporter = exporter(t.Exporter)
	}
	if t.Service != nil {
		in.serviceAnnotations = t.Service.Annotations
		in.clientService = t.Service.Type == v1alpha1.ServiceClusterIP
	}
	return in
}

func arguments(t *v1alpha1.CacheTemplate) []string {
	m := ptr.Deref(t.Memcached, v1alpha1.MemcachedSpec{})
	item := ptr.Deref(m.MaxItemSize, defaultMaxItemSize)
	args := []string{
		"-m", strconv.FormatInt(children.MemoryMiB(t), 10),
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

// itemSize returns bytes in the largest exact unit of memcached's -I.
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

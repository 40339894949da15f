package children

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var defaultMemory = resource.MustParse("64Mi")

// Memory returns the memory of the cache in each pod, or its default.
func Memory(t *v1alpha1.CacheTemplate) resource.Quantity { return ptr.Deref(t.Memory, defaultMemory) }

// MemoryMiB returns the memory of the cache in whole MiB, as memcached's -m takes it.
func MemoryMiB(t *v1alpha1.CacheTemplate) int64 {
	memory := Memory(t)
	return memory.Value() >> 20
}

// LimitMiB returns the memory limit of the cache container in MiB: 1.2 times the memory
// of the cache, rounded, for the hash table and the connections. The factor is that of
// Grafana Mimir's Helm chart.
func LimitMiB(memoryMiB int64) int64 { return (memoryMiB*12 + 5) / 10 }

// Resources returns the resources of the cache container. The entries of r replace the
// derived memory; a limit without a request is the request too.
func Resources(r *v1alpha1.Resources, memoryMiB int64) v1alpha1.Resources {
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

// mebibytes keeps the unit Mi, where Quantity would format 2048Mi as 2Gi.
func mebibytes(n int64) resource.Quantity {
	return resource.MustParse(strconv.FormatInt(n, 10) + "Mi")
}

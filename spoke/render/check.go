package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Problem is bad input: which field, what value, what to do.
type Problem struct {
	Field, Value, Fix string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %q: %s", p.Field, p.Value, p.Fix)
}

// memcached's own limits, see its memcached.c: -I between 1 KiB and 1 GiB, at most
// half of -m, and a multiple of slab_chunk_max. Below 8 MiB its first slabs do
// not fit.
const (
	minMemory   = 8 << 20
	maxMemory   = 4 << 40
	minItemSize = 1 << 10
	maxItemSize = 1 << 30
	// slabChunk is slab_chunk_max where nobody sets it.
	slabChunk = 512 << 10

	minStorage = 1 << 20
)

// Check finds what no member could run. Admission refuses most of it in a
// CacheCluster already; an override only meets its template here.
func Check(t *v1alpha1.CacheTemplate) []Problem {
	var problems []Problem
	add := func(field, value, fix string) { problems = append(problems, Problem{field, value, fix}) }

	if t.Engine != "" && t.Engine != v1alpha1.EngineMemcached {
		add("engine", string(t.Engine), "use Memcached, the only engine so far")
	}
	if t.Replicas != nil && *t.Replicas < 0 {
		add("replicas", fmt.Sprint(*t.Replicas), "use 0 or more")
	}
	memory := ptr.Deref(t.Memory, defaultMemory)
	if memory.Value() < minMemory {
		add("memory", memory.String(), "use at least 8Mi")
	}
	if memory.Value() > maxMemory {
		add("memory", memory.String(), "use at most 4Ti in each pod, and more replicas")
	}
	if t.Memcached != nil && t.Memcached.MaxItemSize != nil {
		checkItemSize(t.Memcached, memory, add)
	}
	if t.Pod != nil {
		for _, label := range slices.Sorted(maps.Keys(Labels("", ""))) {
			if value, taken := t.Pod.Labels[label]; taken {
				add("pod.labels["+label+"]", value, "choose another label: this one is set by reconcile-lab")
			}
		}
	}
	if t.Resources != nil {
		checkResources(t.Resources, MemoryMiB(t), add)
	}
	checkStorage(t, add)
	return problems
}

func checkItemSize(m *v1alpha1.MemcachedSpec, memory resource.Quantity, add func(field, value, fix string)) {
	item := *m.MaxItemSize
	switch {
	case item.Value() < minItemSize || item.Value() > maxItemSize:
		add("memcached.maxItemSize", item.String(), "use between 1Ki and 1Gi")
	case item.Value()*2 > memory.Value()>>20<<20:
		add("memcached.maxItemSize", item.String(), "use at most half of memory, which is "+memory.String()+" here")
	case item.Value()%slabChunk != 0 && !setsSlabChunk(m):
		add("memcached.maxItemSize", item.String(), "use a multiple of 512Ki, or set slab_chunk_max in memcached.extended")
	}
}

func setsSlabChunk(m *v1alpha1.MemcachedSpec) bool {
	return slices.ContainsFunc(m.Extended, func(e string) bool { return strings.Contains(e, "slab_chunk_max=") })
}

// checkStorage finds claims that no API server takes, and a cache that is told to
// keep its items where there is no volume: it would not start.
func checkStorage(t *v1alpha1.CacheTemplate, add func(field, value, fix string)) {
	if t.Storage == nil {
		if t.Memcached == nil {
			return
		}
		for i, option := range t.Memcached.Extended {
			if strings.Contains(option, "="+DataPath+"/") {
				add(fmt.Sprintf("memcached.extended[%d]", i), option, "set storage, which is what "+DataPath+" is")
			}
		}
		return
	}
	if t.Storage.Size.Value() < minStorage {
		add("storage.size", t.Storage.Size.String(), "use at least 1Mi")
	}
	// The empty name is one too: it asks for a volume that was made beforehand.
	if class := ptr.Deref(t.Storage.StorageClassName, ""); class != "" {
		for _, wrong := range validation.IsDNS1123Subdomain(class) {
			add("storage.storageClassName", class, wrong)
		}
	}
	for _, r := range []struct {
		field string
		value v1alpha1.ClaimRetention
	}{{"storage.whenDeleted", t.Storage.WhenDeleted}, {"storage.whenScaled", t.Storage.WhenScaled}} {
		if r.value != "" && r.value != v1alpha1.ClaimRetain && r.value != v1alpha1.ClaimDelete {
			add(r.field, string(r.value), "use Retain or Delete")
		}
	}
}

// checkResources finds a container that the kernel would kill once its cache is
// full, and requests that no API server accepts.
func checkResources(r *v1alpha1.Resources, memoryMiB int64, add func(field, value, fix string)) {
	effective := cacheResources(r, memoryMiB)
	if limit, set := r.Limits[corev1.ResourceMemory]; set && limit.Value() < memoryMiB<<20 {
		add("resources.limits[memory]", limit.String(), fmt.Sprintf("use at least %dMi: a full cache would be killed", LimitMiB(memoryMiB)))
	}
	for _, name := range slices.Sorted(maps.Keys(effective.Requests)) {
		request := effective.Requests[name]
		limit, limited := effective.Limits[name]
		if limited && request.Cmp(limit) > 0 {
			add("resources.requests["+string(name)+"]", request.String(), "use at most the limit, which is "+limit.String())
		}
	}
}

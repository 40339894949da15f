package validation

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
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

// Problem is one invalid value: its field, the value and the fix.
type Problem struct {
	Field, Value, Fix string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %q: %s", p.Field, p.Value, p.Fix)
}

// Limits of memcached, see its memcached.c: -I must be between 1 KiB and 1 GiB, at most
// half of -m, and a multiple of slab_chunk_max. The first slabs need 8 MiB.
const (
	minMemory   = 8 << 20
	maxMemory   = 4 << 40
	minItemSize = 1 << 10
	maxItemSize = 1 << 30
	// slabChunk is the default of slab_chunk_max.
	slabChunk = 512 << 10

	minStorage = 1 << 20
)

// Template returns the problems of a template. No member can run a template that has one.
func Template(t *v1alpha1.CacheTemplate) []Problem {
	var problems []Problem
	add := func(field, value, fix string) { problems = append(problems, Problem{field, value, fix}) }

	if t.Engine != "" && t.Engine != v1alpha1.EngineMemcached {
		add("engine", string(t.Engine), "use Memcached, the only supported engine")
	}
	if t.Replicas != nil && *t.Replicas < 0 {
		add("replicas", fmt.Sprint(*t.Replicas), "use 0 or more")
	}
	memory := children.Memory(t)
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
		for _, label := range slices.Sorted(maps.Keys(children.Labels("", ""))) {
			if value, reserved := t.Pod.Labels[label]; reserved {
				add("pod.labels["+label+"]", value, "use another label: reconcile-lab sets this one")
			}
		}
	}
	if t.Resources != nil {
		checkResources(t.Resources, children.MemoryMiB(t), add)
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
		add("memcached.maxItemSize", item.String(), "use at most half of memory, which is "+memory.String())
	case item.Value()%slabChunk != 0 && !setsSlabChunk(m):
		add("memcached.maxItemSize", item.String(), "use a multiple of 512Ki, or set slab_chunk_max in memcached.extended")
	}
}

func setsSlabChunk(m *v1alpha1.MemcachedSpec) bool {
	return slices.ContainsFunc(m.Extended, func(e string) bool { return strings.Contains(e, "slab_chunk_max=") })
}

// checkStorage refuses claims that no API server accepts, and a data path without a
// volume: memcached would not start.
func checkStorage(t *v1alpha1.CacheTemplate, add func(field, value, fix string)) {
	if t.Storage == nil {
		if t.Memcached == nil {
			return
		}
		for i, option := range t.Memcached.Extended {
			if strings.Contains(option, "="+children.DataPath+"/") {
				add(fmt.Sprintf("memcached.extended[%d]", i), option, "set storage: "+children.DataPath+" is the mount path of its volume")
			}
		}
		return
	}
	if t.Storage.Size.Value() < minStorage {
		add("storage.size", t.Storage.Size.String(), "use at least 1Mi")
	}
	// The empty name is valid: it asks for an existing volume without a class.
	if class := ptr.Deref(t.Storage.StorageClassName, ""); class != "" {
		for _, problem := range validation.IsDNS1123Subdomain(class) {
			add("storage.storageClassName", class, problem)
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

// checkResources refuses a limit at which the kernel kills a full cache, and requests
// that no API server accepts.
func checkResources(r *v1alpha1.Resources, memoryMiB int64, add func(field, value, fix string)) {
	effective := children.Resources(r, memoryMiB)
	if limit, set := r.Limits[corev1.ResourceMemory]; set && limit.Value() < memoryMiB<<20 {
		add("resources.limits[memory]", limit.String(), fmt.Sprintf("use at least %dMi: the kernel would kill a full cache", children.LimitMiB(memoryMiB)))
	}
	for _, name := range slices.Sorted(maps.Keys(effective.Requests)) {
		request := effective.Requests[name]
		limit, limited := effective.Limits[name]
		if limited && request.Cmp(limit) > 0 {
			add("resources.requests["+string(name)+"]", request.String(), "use at most the limit, which is "+limit.String())
		}
	}
}

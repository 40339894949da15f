package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

func TestTemplate_NamesFieldValueAndFix(t *testing.T) {
	limits := func(memory string) *v1alpha1.Resources {
		return &v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	requests := func(memory string) *v1alpha1.Resources {
		return &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	item := func(size string) *v1alpha1.MemcachedSpec {
		return &v1alpha1.MemcachedSpec{MaxItemSize: quantity(size)}
	}
	for _, c := range []struct {
		name, reason string
		template     v1alpha1.CacheTemplate
		want         []string
	}{
		{"an empty template is fine", "everything has a default", v1alpha1.CacheTemplate{}, nil},
		{"zero replicas are fine", "0 stops every pod and keeps the objects", v1alpha1.CacheTemplate{Replicas: ptr.To[int32](0)}, nil},
		{"another engine", "there is one so far", v1alpha1.CacheTemplate{Engine: "Valkey"},
			[]string{`engine: "Valkey": use Memcached, the only supported engine`}},
		{"negative replicas", "no StatefulSet takes them", v1alpha1.CacheTemplate{Replicas: ptr.To[int32](-1)},
			[]string{`replicas: "-1": use 0 or more`}},
		{"memory without its unit", "64 are 64 bytes", v1alpha1.CacheTemplate{Memory: quantity("64")},
			[]string{`memory: "64": use at least 8Mi`}},
		{"memory just too small", "memcached's first slabs do not fit", v1alpha1.CacheTemplate{Memory: quantity("7Mi")},
			[]string{`memory: "7Mi": use at least 8Mi`}},
		{"memory just large enough", "the limit itself is allowed", v1alpha1.CacheTemplate{Memory: quantity("8Mi")}, nil},
		{"items above half of memory", "memcached refuses to start", v1alpha1.CacheTemplate{Memory: quantity("64Mi"), Memcached: item("33Mi")},
			[]string{`memcached.maxItemSize: "33Mi": use at most half of memory, which is 64Mi`}},
		{"items of half of memory", "the limit itself is allowed", v1alpha1.CacheTemplate{Memory: quantity("64Mi"), Memcached: item("32Mi")}, nil},
		{"items below 1Ki", "memcached refuses to start", v1alpha1.CacheTemplate{Memcached: item("1")},
			[]string{`memcached.maxItemSize: "1": use between 1Ki and 1Gi`}},
		{"items above 1Gi", "memcached refuses to start", v1alpha1.CacheTemplate{Memory: quantity("8Gi"), Memcached: item("2Gi")},
			[]string{`memcached.maxItemSize: "2Gi": use between 1Ki and 1Gi`}},
		{"items below memcached's chunks", "memcached refuses to start", v1alpha1.CacheTemplate{Memcached: item("100Ki")},
			[]string{`memcached.maxItemSize: "100Ki": use a multiple of 512Ki, or set slab_chunk_max in memcached.extended`}},
		{"items that are no multiple of memcached's chunks", "memcached refuses to start", v1alpha1.CacheTemplate{Memcached: item("1280Ki")},
			[]string{`memcached.maxItemSize: "1280Ki": use a multiple of 512Ki, or set slab_chunk_max in memcached.extended`}},
		{"items of three chunks", "a multiple is allowed", v1alpha1.CacheTemplate{Memcached: item("1.5Mi")}, nil},
		{"chunks of another size", "the user knows them better", v1alpha1.CacheTemplate{Memcached: func() *v1alpha1.MemcachedSpec {
			m := item("100Ki")
			m.Extended = []string{"modern", "slab_chunk_max=16"}
			return m
		}()}, nil},
		{"items above half of memory in whole MiB", "memcached gets whole MiB", v1alpha1.CacheTemplate{Memory: quantity("9728Ki"), Memcached: func() *v1alpha1.MemcachedSpec {
			m := item("4864Ki")
			m.Extended = []string{"slab_chunk_max=64"}
			return m
		}()}, []string{`memcached.maxItemSize: "4864Ki": use at most half of memory, which is 9728Ki`}},
		{"items above the half of the default memory", "what is left out counts with its default", v1alpha1.CacheTemplate{Memcached: item("40Mi")},
			[]string{`memcached.maxItemSize: "40Mi": use at most half of memory, which is 64Mi`}},
		{"a label of ours on the pods", "the selector and drift rest on it",
			v1alpha1.CacheTemplate{Pod: &v1alpha1.PodSpec{Labels: map[string]string{v1alpha1.LabelInstance: "x"}}},
			[]string{`pod.labels[app.kubernetes.io/instance]: "x": use another label: reconcile-lab sets this one`}},
		{"a limit below the cache", "a full cache would be killed", v1alpha1.CacheTemplate{Memory: quantity("64Mi"), Resources: limits("32Mi")},
			[]string{`resources.limits[memory]: "32Mi": use at least 77Mi: the kernel would kill a full cache`}},
		{"a request above the derived limit", "no API server takes it", v1alpha1.CacheTemplate{Memory: quantity("64Mi"), Resources: requests("100Mi")},
			[]string{`resources.requests[memory]: "100Mi": use at most the limit, which is 77Mi`}},
		{"storage that is fine", "size alone is enough", v1alpha1.CacheTemplate{Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("1Mi")}}, nil},
		{"storage without its unit", "10 are 10 bytes", v1alpha1.CacheTemplate{Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("10")}},
			[]string{`storage.size: "10": use at least 1Mi`}},
		{"the empty storage class", "it asks for a volume that was made beforehand", v1alpha1.CacheTemplate{Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi"), StorageClassName: ptr.To("")}}, nil},
		{"a retention that does not exist", "an override is not checked by admission",
			v1alpha1.CacheTemplate{Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi"), WhenDeleted: "Keep", WhenScaled: "Drop"}},
			[]string{`storage.whenDeleted: "Keep": use Retain or Delete`, `storage.whenScaled: "Drop": use Retain or Delete`}},
		{"items on a volume that is not there", "memcached refuses to start", v1alpha1.CacheTemplate{Memcached: &v1alpha1.MemcachedSpec{Extended: []string{"modern", "ext_path=/data/extstore:8G"}}},
			[]string{`memcached.extended[1]: "ext_path=/data/extstore:8G": set storage: /data is the mount path of its volume`}},
		{"everything wrong", "all of it is said at once, in the order of the fields",
			v1alpha1.CacheTemplate{Engine: "Redis", Replicas: ptr.To[int32](-2), Memory: quantity("1Mi"), Memcached: item("1Mi")},
			[]string{`engine: "Redis": use Memcached, the only supported engine`, `replicas: "-2": use 0 or more`, `memory: "1Mi": use at least 8Mi`,
				`memcached.maxItemSize: "1Mi": use at most half of memory, which is 1Mi`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range validation.Template(&c.template) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", c.reason, diff)
			}
			children, problems := render.Render(memberCache(c.template))
			if (len(problems) > 0) != (len(c.want) > 0) || len(problems) > 0 && children != nil {
				t.Errorf("Render returned %d children and the problems %v", len(children), problems)
			}
		})
	}
}

func memberCache(t v1alpha1.CacheTemplate) *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions.member-1"},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", CacheClusterUID: "uid", Cluster: "member-1", Template: t},
	}
}

func quantity(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }

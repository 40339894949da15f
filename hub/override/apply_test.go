package override

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
)

func quantity(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }

var member = placement.Member{Name: "lab-1", Labels: map[string]string{"provider": "kind"}}

func base() v1alpha1.CacheTemplate {
	return v1alpha1.CacheTemplate{
		Version: "1.6", Replicas: ptr.To[int32](3), Memory: quantity("1Gi"),
		Memcached: &v1alpha1.MemcachedSpec{MaxConnections: ptr.To[int32](1024), Extended: []string{"modern"}, Args: []string{"-v"}},
		Resources: &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
	}
}

func TestApply_SetsTheFieldsOfTheOverridesForTheMember(t *testing.T) {
	here := []string{"lab-1"}
	selector := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"provider": value}}
	}
	for _, c := range []struct {
		name, why string
		overrides []v1alpha1.Override
		want      func(*v1alpha1.CacheTemplate)
	}{
		{"none", "the template is unchanged", nil, func(*v1alpha1.CacheTemplate) {}},
		{"for another", "it names another member", []v1alpha1.Override{{Clusters: []string{"lab-2"}, Replicas: ptr.To[int32](9)}}, func(*v1alpha1.CacheTemplate) {}},
		{"for other labels", "it selects another member", []v1alpha1.Override{{ClusterSelector: selector("eks"), Replicas: ptr.To[int32](9)}}, func(*v1alpha1.CacheTemplate) {}},
		{"by name", "it names the member", []v1alpha1.Override{{Clusters: here, Replicas: ptr.To[int32](1)}}, func(t *v1alpha1.CacheTemplate) { t.Replicas = ptr.To[int32](1) }},
		{"by labels", "it selects the member", []v1alpha1.Override{{ClusterSelector: selector("kind"), Memory: quantity("64Mi")}}, func(t *v1alpha1.CacheTemplate) { t.Memory = quantity("64Mi") }},
		{"zero replicas", "0 is a value", []v1alpha1.Override{{Clusters: here, Replicas: ptr.To[int32](0)}}, func(t *v1alpha1.CacheTemplate) { t.Replicas = ptr.To[int32](0) }},
		{"two", "the later one has precedence", []v1alpha1.Override{
			{Clusters: here, Version: "1.7", Image: "mirror/memcached:1.7"}, {ClusterSelector: &metav1.LabelSelector{}, Version: "1.8"}},
			func(t *v1alpha1.CacheTemplate) { t.Version, t.Image = "1.8", "mirror/memcached:1.7" }},
		{"one resource", "the others are kept", []v1alpha1.Override{{Clusters: here, Resources: &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}},
			func(t *v1alpha1.CacheTemplate) {
				t.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
			}},
		{"one option of memcached", "the others are kept", []v1alpha1.Override{{Clusters: here, Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: quantity("2Mi"), Threads: ptr.To[int32](2)}}},
			func(t *v1alpha1.CacheTemplate) {
				t.Memcached.MaxItemSize, t.Memcached.Threads = quantity("2Mi"), ptr.To[int32](2)
			}},
		{"a list", "it replaces the list", []v1alpha1.Override{{Clusters: here, Memcached: &v1alpha1.MemcachedSpec{Extended: []string{"track_sizes"}, Args: []string{}}}},
			func(t *v1alpha1.CacheTemplate) {
				t.Memcached.Extended, t.Memcached.Args = []string{"track_sizes"}, []string{}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			template, overrides := base(), c.overrides
			got, problems := Apply(template, overrides, member)
			want := base()
			c.want(&want)
			if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%s: problems %v, template (-want +got):\n%s", c.why, problems, diff)
			}
			if diff := cmp.Diff(base(), template); diff != "" {
				t.Errorf("the template of the CacheCluster changed:\n%s", diff)
			}
		})
	}
}

func TestApply_FillsAnEmptyTemplate(t *testing.T) {
	o := v1alpha1.Override{ClusterSelector: &metav1.LabelSelector{}, Memcached: &v1alpha1.MemcachedSpec{Threads: ptr.To[int32](2)},
		Resources: &v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	got, problems := Apply(v1alpha1.CacheTemplate{}, []v1alpha1.Override{o}, member)
	if len(problems) > 0 || *got.Memcached.Threads != 2 || got.Resources.Limits.Cpu().String() != "1" {
		t.Errorf("%v, %+v", problems, got)
	}
	*got.Memcached.Threads = 3
	if *o.Memcached.Threads != 2 {
		t.Error("the template shares memory with the override")
	}
}

func TestApply_NamesTheOverrideOfAProblem(t *testing.T) {
	for _, c := range []struct {
		name      string
		overrides []v1alpha1.Override
		want      []string
	}{
		{"an item too large for the override's memory", []v1alpha1.Override{{Clusters: []string{"x"}}, {Clusters: []string{"lab-1"}, Memory: quantity("16Mi"), Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: quantity("9Mi")}}},
			[]string{`spec.memcached.maxItemSize: "9Mi": use at most half of memory, which is 16Mi after spec.overrides[1]`}},
		{"an invalid selector", []v1alpha1.Override{{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}},
			[]string{`spec.overrides[0].clusterSelector: "Near" is not a valid label selector operator`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := Apply(base(), c.overrides, member)
			if diff := cmp.Diff(c.want, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRevision_DependsOnTheTemplateOnly(t *testing.T) {
	one, same, other := base(), base(), base()
	same.Memory = quantity("1024Mi")
	other.Replicas = ptr.To[int32](4)
	if Revision(&one) != Revision(&same) {
		t.Error("another spelling of the same memory is another revision")
	}
	if Revision(&one) == Revision(&other) || Revision(&one) == "" {
		t.Errorf("revisions %q and %q", Revision(&one), Revision(&other))
	}
}

package override

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
)

// Apply returns the template with the overrides for a member, and problems. A problem names
// the field, its value and the fix. With problems, the template must not be used.
func Apply(template v1alpha1.CacheTemplate, overrides []v1alpha1.Override, member placement.Member) (v1alpha1.CacheTemplate, []string) {
	out := *template.DeepCopy()
	var problems []string
	applied := ""
	for i := range overrides {
		o := &overrides[i]
		selected, err := selects(o, member)
		if err != nil {
			problems = append(problems, fmt.Sprintf("spec.overrides[%d].clusterSelector: %v", i, err))
			continue
		}
		if selected {
			merge(&out, o)
			applied += fmt.Sprintf(" after spec.overrides[%d]", i)
		}
	}
	for _, p := range validation.Template(&out) {
		problems = append(problems, "spec."+p.String()+applied)
	}
	return out, problems
}

// Revision returns a digest of a template. It does not depend on the name of the
// CacheCluster.
func Revision(t *v1alpha1.CacheTemplate) string {
	raw, err := json.Marshal(t)
	if err != nil {
		// Plain data without cycles always encodes.
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:5])
}

// selects reports whether an override names or selects a member.
func selects(o *v1alpha1.Override, member placement.Member) (bool, error) {
	if slices.Contains(o.Clusters, member.Name) {
		return true, nil
	}
	selector, err := placement.Selector(o.ClusterSelector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(member.Labels)), nil
}

// merge sets the fields of an override in a template.
func merge(t *v1alpha1.CacheTemplate, o *v1alpha1.Override) {
	o = o.DeepCopy()
	if o.Replicas != nil {
		t.Replicas = o.Replicas
	}
	if o.Memory != nil {
		t.Memory = o.Memory
	}
	if o.Version != "" {
		t.Version = o.Version
	}
	if o.Image != "" {
		t.Image = o.Image
	}
	if o.Resources != nil {
		if t.Resources == nil {
			t.Resources = &v1alpha1.Resources{}
		}
		t.Resources.Requests = mergeResources(t.Resources.Requests, o.Resources.Requests)
		t.Resources.Limits = mergeResources(t.Resources.Limits, o.Resources.Limits)
	}
	if o.Memcached != nil {
		mergeMemcached(t, o.Memcached)
	}
}

func mergeMemcached(t *v1alpha1.CacheTemplate, o *v1alpha1.MemcachedSpec) {
	if t.Memcached == nil {
		t.Memcached = &v1alpha1.MemcachedSpec{}
	}
	if o.MaxItemSize != nil {
		t.Memcached.MaxItemSize = o.MaxItemSize
	}
	if o.MaxConnections != nil {
		t.Memcached.MaxConnections = o.MaxConnections
	}
	if o.Threads != nil {
		t.Memcached.Threads = o.Threads
	}
	if o.Extended != nil {
		t.Memcached.Extended = o.Extended
	}
	if o.Args != nil {
		t.Memcached.Args = o.Args
	}
}

func mergeResources(base, over corev1.ResourceList) corev1.ResourceList {
	if len(base) == 0 {
		return over
	}
	for name, quantity := range over {
		base[name] = quantity
	}
	return base
}

package children

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Kinds of children, in the order of application: DNS needs the Service before the
// StatefulSet starts its pods.
var (
	ServiceKind     = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	StatefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	BudgetKind      = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}

	Kinds = []schema.GroupVersionKind{ServiceKind, StatefulSetKind, BudgetKind}
)

const (
	// CacheContainer is the name of the container that runs the cache server.
	CacheContainer = "memcached"
	// DataVolume is the name of the volume claim template.
	DataVolume = "data"
	// DataPath is the mount path of DataVolume.
	DataPath = "/data"
)

// Selector returns the labels that select the pods of a cache in a member. The selector
// of a StatefulSet is immutable, so it holds only what distinguishes two caches of one
// namespace.
func Selector(cacheCluster string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:     "memcached",
		v1alpha1.LabelInstance: cacheCluster,
	}
}

// Labels returns the labels of every child and pod. They include the member, so that
// metrics and logs of several members can be distinguished.
func Labels(cacheCluster, cluster string) map[string]string {
	labels := Selector(cacheCluster)
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	labels[v1alpha1.LabelCacheCluster] = cacheCluster
	labels[v1alpha1.LabelCluster] = cluster
	return labels
}

// OwnerMark returns the owner mark of every child of a MemberCache: the UID of the
// CacheCluster and the name of the member. The UID distinguishes CacheClusters of the
// same name, on another hub or at another time. The member distinguishes the two names
// of a cluster that joined twice, so that they do not correct each other's children.
func OwnerMark(mc *v1alpha1.MemberCache) string {
	uid := mc.Spec.CacheClusterUID
	if uid == "" {
		// A user created this MemberCache without a CacheCluster.
		uid = string(mc.UID)
	}
	return uid + "/" + mc.Spec.Cluster
}

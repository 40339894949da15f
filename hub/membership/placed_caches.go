package membership

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// memberCaches returns the MemberCaches of a member, sorted. It selects by spec.cluster,
// which is immutable, because a label can be removed.
func (c *cluster) memberCaches(ctx context.Context, name string) ([]v1alpha1.MemberCache, error) {
	var list v1alpha1.MemberCacheList
	if err := c.List(ctx, &list); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	placed := slices.DeleteFunc(list.Items, func(mc v1alpha1.MemberCache) bool { return mc.Spec.Cluster != name })
	sort.Slice(placed, func(i, j int) bool { return cacheOf(&placed[i]) < cacheOf(&placed[j]) })
	return placed, nil
}

// cacheOf returns NAMESPACE/NAME of the CacheCluster.
func cacheOf(mc *v1alpha1.MemberCache) string { return mc.Namespace + "/" + mc.Spec.CacheCluster }

// placedError returns an error that names the caches placed on a member, and the command
// that removes each.
func (c *cluster) placedError(ctx context.Context, member string, placed []v1alpha1.MemberCache) error {
	const shown = 10
	var names, commands []string
	for i := range placed {
		names = append(names, cacheOf(&placed[i]))
		if i < shown {
			commands = append(commands, "\n  "+c.removeCommand(ctx, member, &placed[i]))
		}
	}
	if rest := len(placed) - shown; rest > 0 {
		commands = append(commands, fmt.Sprintf("\n  and %d more: kubectl get mcache -A", rest))
	}
	return fmt.Errorf("member %s %w %s; remove the member from the placement of each cache, or delete the cache, and leave when the children are deleted, or keep the children running and orphan them: reconcile-lab leave %s --abandon%s",
		member, ErrPlaced, sample(names, shown), member, strings.Join(commands, ""))
}

// removeCommand returns why a cache is placed on a member, and the command that changes
// that.
func (c *cluster) removeCommand(ctx context.Context, member string, mc *v1alpha1.MemberCache) string {
	var cc v1alpha1.CacheCluster
	switch err := c.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: mc.Spec.CacheCluster}, &cc); {
	case mc.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is being removed from the member already", cacheOf(mc))
	case err != nil:
		return fmt.Sprintf("%s no longer exists; delete its MemberCache: kubectl delete mcache -n %s %s", cacheOf(mc), mc.Namespace, mc.Name)
	case slices.Contains(cc.Spec.Placement.Clusters, member):
		return fmt.Sprintf("%s names the member in spec.placement.clusters: kubectl edit cc -n %s %s", cacheOf(mc), cc.Namespace, cc.Name)
	case equality.Semantic.DeepEqual(cc.Spec.Placement.ClusterSelector, &metav1.LabelSelector{}):
		return fmt.Sprintf("%s selects every member; set a selector, or names in spec.placement.clusters: kubectl edit cc -n %s %s", cacheOf(mc), cc.Namespace, cc.Name)
	default:
		return fmt.Sprintf("%s selects the member by its labels: kubectl edit cc -n %s %s, or change the member's labels: kubectl label clusterprofile -n %s %s LABEL-", cacheOf(mc), cc.Namespace, cc.Name, v1alpha1.InventoryNamespace, member)
	}
}

// orphanedChildren returns a text that names the children of an abandoned MemberCache, and
// the command that deletes them.
func orphanedChildren(mc *v1alpha1.MemberCache) string {
	if len(mc.Status.Inventory) == 0 {
		return fmt.Sprintf("abandoned %s, which has no known children there", cacheOf(mc))
	}
	var objects []string
	for _, e := range mc.Status.Inventory {
		objects = append(objects, strings.ToLower(e.Kind)+"/"+e.Name)
	}
	sort.Strings(objects)
	return fmt.Sprintf("orphaned children of %s; delete them in the member: kubectl delete -n %s %s", cacheOf(mc), mc.Namespace, strings.Join(objects, " "))
}

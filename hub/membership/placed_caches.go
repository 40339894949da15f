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

// memberCaches of a member on the hub, sorted, found by what cannot change: somebody
// may have removed the label.
func (c *cluster) memberCaches(ctx context.Context, name string) ([]v1alpha1.MemberCache, error) {
	var list v1alpha1.MemberCacheList
	if err := c.List(ctx, &list); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	held := slices.DeleteFunc(list.Items, func(mc v1alpha1.MemberCache) bool { return mc.Spec.Cluster != name })
	sort.Slice(held, func(i, j int) bool { return cacheOf(&held[i]) < cacheOf(&held[j]) })
	return held, nil
}

func cacheOf(mc *v1alpha1.MemberCache) string { return mc.Namespace + "/" + mc.Spec.CacheCluster }

// refuse says what keeps a member from leaving, and for each cache how to take it out.
func (c *cluster) refuse(ctx context.Context, member string, held []v1alpha1.MemberCache) error {
	const shown = 5
	var names, ways []string
	for i := range held {
		names = append(names, cacheOf(&held[i]))
		if i < shown {
			ways = append(ways, c.drain(ctx, member, &held[i]))
		}
	}
	return fmt.Errorf("member %s %w %s. Take it out of each cache's placement or delete the cache, and leave when the children are gone: %s. To leave the children running there, with nobody to look after them: reconcile-lab leave %s --abandon",
		member, ErrPlaced, sample(names, 10), strings.Join(ways, "; "), member)
}

// drain says how a cache comes off a member.
func (c *cluster) drain(ctx context.Context, member string, mc *v1alpha1.MemberCache) string {
	var cc v1alpha1.CacheCluster
	switch err := c.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: mc.Spec.CacheCluster}, &cc); {
	case mc.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is being removed from it already", cacheOf(mc))
	case err != nil:
		return fmt.Sprintf("%s is gone: kubectl delete mcache -n %s %s", cacheOf(mc), mc.Namespace, mc.Name)
	case slices.Contains(cc.Spec.Placement.Clusters, member):
		return fmt.Sprintf("%s names it in spec.placement.clusters: kubectl edit cc -n %s %s", cacheOf(mc), cc.Namespace, cc.Name)
	case equality.Semantic.DeepEqual(cc.Spec.Placement.ClusterSelector, &metav1.LabelSelector{}):
		return fmt.Sprintf("%s selects every member: give it a selector, or names in spec.placement.clusters: kubectl edit cc -n %s %s", cacheOf(mc), cc.Namespace, cc.Name)
	default:
		return fmt.Sprintf("%s selects it by its labels: kubectl edit cc -n %s %s, or change the member's labels: kubectl label clusterprofile -n %s %s LABEL-", cacheOf(mc), cc.Namespace, cc.Name, v1alpha1.InventoryNamespace, member)
	}
}

// leftBehind says what stays in the member of an abandoned MemberCache.
func leftBehind(mc *v1alpha1.MemberCache) string {
	if len(mc.Status.Inventory) == 0 {
		return fmt.Sprintf("let go of %s: no children of it are known there", cacheOf(mc))
	}
	var objects []string
	for _, e := range mc.Status.Inventory {
		objects = append(objects, strings.ToLower(e.Kind)+"/"+e.Name)
	}
	sort.Strings(objects)
	return fmt.Sprintf("left behind, children of %s; remove them there with: kubectl delete -n %s %s", cacheOf(mc), mc.Namespace, strings.Join(objects, " "))
}

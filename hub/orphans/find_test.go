package orphans

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func memberCache(namespace, cache, uid, member string, inventory ...string) v1alpha1.MemberCache {
	mc := v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cache + "." + member}}
	mc.Spec.CacheCluster, mc.Spec.CacheClusterUID, mc.Spec.Cluster = cache, uid, member
	for _, uid := range inventory {
		mc.Status.Inventory = append(mc.Status.Inventory, v1alpha1.InventoryEntry{UID: types.UID("of-" + uid)})
	}
	return mc
}

func TestOrphansOf_ReturnsChildrenThatNoMemberCacheOwns(t *testing.T) {
	caches := []v1alpha1.MemberCache{memberCache("shop", "sessions", "u1", "eu-1", "x"), memberCache("shop", "carts", "u2", "us-1", "y")}
	for _, c := range []struct {
		name, why string
		child     child
		orphan    bool
	}{
		{"a child", "its owner annotation is that of a MemberCache", child{namespace: "shop", owner: "u1/eu-1"}, false},
		{"a child whose owner annotation was removed", "the inventory has its UID", child{namespace: "shop", uid: "of-x"}, false},
		{"a child of an earlier CacheCluster", "the CacheCluster has another UID", child{namespace: "shop", owner: "u0/eu-1"}, true},
		{"a child in another namespace", "its MemberCache would be in that namespace", child{namespace: "stock", owner: "u1/eu-1"}, true},
		{"a child of another member", "its MemberCache is of that member", child{namespace: "shop", owner: "u2/us-1"}, true},
		{"a child that another member's inventory holds", "the cluster has two names, and the MemberCache of the other one owns it", child{namespace: "shop", owner: "u2/us-1", uid: "of-y"}, false},
		{"a child of a former name of the member", "nothing owns it", child{namespace: "shop", owner: "u1/eu-0"}, true},
		{"an object with only the label", "nothing owns it", child{namespace: "shop"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := len(orphansOf([]child{c.child}, ownersOf(caches, "eu-1"))) == 1; got != c.orphan {
				t.Errorf("orphan: %t, want %t: %s", got, c.orphan, c.why)
			}
		})
	}
}

func TestMessage_NamesTheOrphansAndTheCommandsThatDeleteOrReleaseThem(t *testing.T) {
	orphans := orphansOf([]child{
		{kind: "StatefulSet", namespace: "shop", name: "sessions"}, {kind: "Service", namespace: "shop", name: "sessions"}, {kind: "Service", namespace: "stock", name: "carts"},
	}, owners{})
	want := "3 objects in eu-1 with the label cache.reconcile-lab.io/cachecluster: no MemberCache of this hub owns them: " +
		"shop/Service/sessions, shop/StatefulSet/sessions, stock/Service/carts. If no other hub owns them, delete them in the member: " +
		"kubectl delete -n shop service/sessions statefulset/sessions; kubectl delete -n stock service/carts; or keep them and remove the label: " +
		"kubectl label -n shop service/sessions statefulset/sessions cache.reconcile-lab.io/cachecluster-; kubectl label -n stock service/carts cache.reconcile-lab.io/cachecluster-"
	if diff := cmp.Diff(want, message("eu-1", orphans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var many []child
	for i := range 300 {
		many = append(many, child{kind: "Service", namespace: fmt.Sprintf("ns-%03d", i), name: strings.Repeat("n", 52)})
	}
	// 32768 characters is the limit of an API server for the message of a condition.
	if text := message("eu-1", many); len(text) > 32768 || !strings.Contains(text, " and 288 more.") {
		t.Errorf("%d characters: %s", len(text), text)
	}
}

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

func TestAChildIsLeftOverIfNoMemberCacheOwnsIt(t *testing.T) {
	caches := []v1alpha1.MemberCache{memberCache("shop", "sessions", "u1", "eu-1", "x"), memberCache("shop", "carts", "u2", "us-1", "y")}
	for _, c := range []struct {
		name, why string
		child     child
		left      bool
	}{
		{"a child", "its mark is a MemberCache's", child{namespace: "shop", mark: "u1/eu-1"}, false},
		{"a child whose mark was taken off", "the inventory knows its UID", child{namespace: "shop", uid: "of-x"}, false},
		{"a child of an earlier life", "the CacheCluster is another one", child{namespace: "shop", mark: "u0/eu-1"}, true},
		{"a child in another namespace", "its MemberCache would be there", child{namespace: "stock", mark: "u1/eu-1"}, true},
		{"a child of another member", "its MemberCache is of that one", child{namespace: "shop", mark: "u2/us-1"}, true},
		{"a child that another member's inventory holds", "the cluster has two names, and the other one looks after it", child{namespace: "shop", mark: "u2/us-1", uid: "of-y"}, false},
		{"a child of a former name of the member", "nobody looks for it", child{namespace: "shop", mark: "u1/eu-0"}, true},
		{"an object with nothing but the label", "nobody looks for it", child{namespace: "shop"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := len(unowned([]child{c.child}, ownedBy(caches, "eu-1"))) == 1; got != c.left {
				t.Errorf("left over: %t, want %t: %s", got, c.left, c.why)
			}
		})
	}
}

func TestTheMessageNamesWhatIsLeftAndHowToBeRidOfIt(t *testing.T) {
	left := unowned([]child{
		{kind: "StatefulSet", namespace: "shop", name: "sessions"}, {kind: "Service", namespace: "shop", name: "sessions"}, {kind: "Service", namespace: "stock", name: "carts"},
	}, owned{})
	want := "3 objects with the label cache.reconcile-lab.io/cachecluster in eu-1 belong to no MemberCache that this hub has for eu-1, so it does not look after them: " +
		"shop/Service/sessions, shop/StatefulSet/sessions, stock/Service/carts. They were left behind, or another hub made them. If no other hub does, remove them there: " +
		"kubectl delete -n shop service/sessions statefulset/sessions; kubectl delete -n stock service/carts; or keep them and take the label off: " +
		"kubectl label -n shop service/sessions statefulset/sessions cache.reconcile-lab.io/cachecluster-; kubectl label -n stock service/carts cache.reconcile-lab.io/cachecluster-"
	if diff := cmp.Diff(want, message("eu-1", left)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var many []child
	for i := range 300 {
		many = append(many, child{kind: "Service", namespace: fmt.Sprintf("ns-%03d", i), name: strings.Repeat("n", 52)})
	}
	// As much as an API server takes in a condition.
	if text := message("eu-1", many); len(text) > 32768 || !strings.Contains(text, " and 288 more.") {
		t.Errorf("%d characters: %s", len(text), text)
	}
}

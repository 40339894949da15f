package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func memberCache() *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Name: "sessions.member-1", Namespace: "shop", UID: "uid-of-the-membercache",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CacheCluster",
				Name: "sessions", UID: "uid-of-the-cachecluster", Controller: ptr.To(true)}}},
		Spec: v1alpha1.MemberCacheSpec{CacheCluster: "sessions", CacheClusterUID: "uid-of-the-cachecluster", Cluster: "member-1"},
	}
}

func TestLimitMiB_IsTwelveTenthsRounded(t *testing.T) {
	for cache, limit := range map[int64]int64{8192: 9830, 2048: 2458, 512: 614, 1024: 1229, 64: 77, 8: 10, 1: 1, 0: 0} {
		if got := LimitMiB(cache); got != limit {
			t.Errorf("LimitMiB(%d) = %d, want %d", cache, got, limit)
		}
	}
}

func TestOwnerMark_SurvivesOrphaning(t *testing.T) {
	mc := memberCache()
	before := OwnerMark(mc)
	mc.OwnerReferences = nil
	if after := OwnerMark(mc); after != before {
		t.Errorf("%q became %q: the hub would refuse its own children", before, after)
	}
}

func TestOwnerMark_UsesOwnUIDWithoutCacheCluster(t *testing.T) {
	mc := memberCache()
	mc.Spec.CacheClusterUID = ""
	if got := OwnerMark(mc); got != "uid-of-the-membercache/member-1" {
		t.Errorf("owner %q", got)
	}
}

func TestOwnerMark_DistinguishesNamesOfOneCluster(t *testing.T) {
	one, two := memberCache(), memberCache()
	two.Spec.Cluster = "twin"
	if OwnerMark(one) == OwnerMark(two) {
		t.Errorf("both are %q: each member would correct the children of the other", OwnerMark(one))
	}
}

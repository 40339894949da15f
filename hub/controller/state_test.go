package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestADeletionThatWasTakenIsNotAskedForAgain(t *testing.T) {
	var r removed
	eu, us := &v1alpha1.MemberCache{}, &v1alpha1.MemberCache{}
	eu.UID, us.UID = "eu", "us"
	eu.ResourceVersion, us.ResourceVersion = "7", "8"
	both := []*v1alpha1.MemberCache{eu, us}
	left := func(cc types.UID, remove ...*v1alpha1.MemberCache) (names string) {
		for _, mc := range r.take(cc, remove) {
			names += string(mc.UID) + " "
		}
		return names
	}
	if got := left("a", both...); got != "eu us " {
		t.Errorf("at first: %q", got)
	}
	r.note("a", eu)
	for range 2 {
		if got := left("a", both...); got != "us " {
			t.Errorf("after eu was deleted: %q", got)
		}
	}
	if got := left("b", both...); got != "eu us " {
		t.Errorf("of another CacheCluster: %q", got)
	}
	r.note("a", us)
	if got := left("a", us); got != "" {
		t.Errorf("when the cache shows that eu goes: %q", got)
	}
	if got := left("a"); got != "" || len(r.of) > 0 {
		t.Errorf("when it shows both: %q, remembered: %v", got, r.of)
	}
	r.note("a", eu)
	eu.ResourceVersion = "9"
	if got := left("a", eu); got != "eu " {
		t.Errorf("when a newer one is still to be removed: %q", got)
	}
	r.note("a", eu)
	if r.forget("a"); len(r.of) > 0 {
		t.Errorf("of one that is gone: %v", r.of)
	}
}

package apply

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

func TestWriteCache_ReplacesStaleCache(t *testing.T) {
	object := func(uid, version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(version)
		return u
	}
	for _, c := range []struct {
		name, why     string
		cached        metav1.Object
		newer, latest string
		stillWritten  bool
	}{
		{"an older version in the cache", "the written object is newer", object("a", "9"), "10", "10", true},
		{"the written version in the cache", "the cache shows the write", object("a", "10"), "10", "10", false},
		{"a newer version in the cache", "another client wrote later", object("a", "11"), "11", "11", false},
		{"a successor in the cache", "the written object was deleted", object("b", "11"), "11", "11", false},
		{"the predecessor in the cache", "the hub recreated the object", object("b", "9"), "10", "10", true},
		{"no object in the cache", "only Latest returns the written object", nil, "", "10", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			version := func(o metav1.Object) string {
				if o == nil {
					return ""
				}
				return o.GetResourceVersion()
			}
			writes := NewWriteCache()
			writes.Store(setKey, "shop", object("a", "10"))
			if got := version(writes.Refresh(setKey, "shop", c.cached)); got != c.newer {
				t.Errorf("%s: newer is %q, want %q", c.why, got, c.newer)
			}
			if got := version(writes.Latest(setKey, "shop", c.cached)); got != c.latest {
				t.Errorf("%s: latest is %q, want %q", c.why, got, c.latest)
			}
			if got := version(writes.Latest(setKey, "shop", nil)) != ""; got != c.stillWritten {
				t.Errorf("%s: still written %t, want %t", c.why, got, c.stillWritten)
			}
			if got := writes.Latest(setKey, "elsewhere", nil); got != nil {
				t.Errorf("another namespace returns %v", got)
			}
			writes.Forget(setKey, "shop", "a")
			if got := writes.Latest(setKey, "shop", nil); got != nil {
				t.Errorf("returned after its deletion: %v", got)
			}
		})
	}
}

func TestWriteCache_LatestKeepsPendingWrite(t *testing.T) {
	object := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetResourceVersion(version)
		return u
	}
	writes := NewWriteCache()
	writes.Store(setKey, "shop", object("10"))
	seen := writes.Refresh(setKey, "shop", object("9"))
	writes.Latest(setKey, "shop", seen)
	if got := writes.Refresh(setKey, "shop", object("9")).GetResourceVersion(); got != "10" {
		t.Errorf("version %q is returned while the cache shows version 9: the drift would be corrected twice", got)
	}
}

func TestWriteCache_PendingUntilCacheShowsWrite(t *testing.T) {
	set := liveOf(t, desired(t))[setKey]
	inventory := inventoryOf(Live{setKey: set})
	r := NewWriteCache()
	if r.Pending("shop", inventory) {
		t.Error("pending before a write")
	}
	r.Store(setKey, "shop", set)
	if !r.Pending("shop", inventory) || r.Pending("stock", inventory) || r.Pending("shop", nil) {
		t.Error("the write is not pending")
	}
	r.Refresh(setKey, "shop", nil)
	if !r.Pending("shop", inventory) {
		t.Error("an absent object ends the pending write")
	}
	r.Refresh(setKey, "shop", set)
	if r.Pending("shop", inventory) {
		t.Error("pending although the cache shows the write")
	}
}

func TestClaims_WaitForTheOtherPlan(t *testing.T) {
	all := desired(t)
	steps := []Step{{Desired: all[0]}, {Desired: all[1]}}
	r := NewWriteCache()
	release, late := r.claims.acquire(t.Context(), "shop", steps)
	if late != nil {
		t.Fatal(late)
	}
	if other, late := r.claims.acquire(t.Context(), "stock", steps); late != nil {
		t.Errorf("another namespace waits: %v", late)
	} else {
		other()
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, late := r.claims.acquire(soon, "shop", steps[1:]); late == nil || failure.Of(late, "claim", "").Class != v1alpha1.ClassTransient {
		t.Errorf("claimed twice: %v", late)
	}
	got := make(chan func())
	go func() {
		next, _ := r.claims.acquire(t.Context(), "shop", steps[1:])
		got <- next
	}()
	release()
	(<-got)()
	if len(r.claims.claimed) > 0 {
		t.Errorf("%d claims remain", len(r.claims.claimed))
	}
}

func TestWriteCache_KeepsMismatchUntilObjectOrIntentChanges(t *testing.T) {
	object := storedBy(t, find(t, stored(t, nil), setKey))
	writes, why := NewWriteCache(), mismatch(setKey, object, "spec.replicas")
	writes.storeMismatch(setKey, object, "intent", why)
	if writes.mismatch(setKey, object, "intent") != why || writes.mismatch(setKey, object, "another intent") != nil {
		t.Error("the mismatch is of another intent")
	}
	writes.storeMismatch(setKey, object, "intent", why)
	object.SetResourceVersion("11")
	if writes.mismatch(setKey, object, "intent") != nil {
		t.Error("the mismatch is of an older version")
	}
}

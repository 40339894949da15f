package expectations

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(uid, version string) metav1.Object {
	return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
}

func TestIsStale_UntilCacheHasLastWrite(t *testing.T) {
	var writes Writes
	if writes.IsStale(object("a", "1")) {
		t.Error("an object without a write is stale")
	}
	writes.Record(object("a", "9"))
	writes.Record(object("a", "10"))
	for _, c := range []struct {
		name   string
		cached metav1.Object
		want   bool
	}{
		{"an older version that sorts later as text", object("a", "9"), true},
		{"another object", object("b", "1"), false},
		{"the written version", object("a", "10"), false},
		{"an older version after the cache had the written one", object("a", "9"), false},
	} {
		if got := writes.IsStale(c.cached); got != c.want {
			t.Errorf("%s: stale is %t, want %t", c.name, got, c.want)
		}
	}
	writes.Record(object("a", "12"))
	writes.Forget("a")
	if writes.IsStale(object("a", "11")) {
		t.Error("a forgotten object is stale")
	}
	writes.Record(object("a", "12"))
	if writes.IsStale(object("a", "13")) {
		t.Error("a newer version is stale")
	}
}

func TestIsLastWrite_ComparesVersions(t *testing.T) {
	var writes Writes
	writes.Record(object("a", "9"))
	for _, c := range []struct {
		name   string
		object metav1.Object
		want   bool
	}{
		{"the written version", object("a", "9"), true},
		{"a later version", object("a", "10"), false},
		{"an earlier version", object("a", "8"), false},
		{"another object", object("b", "9"), false},
	} {
		if got := writes.IsLastWrite(c.object); got != c.want {
			t.Errorf("%s: last write is %t, want %t", c.name, got, c.want)
		}
	}
}

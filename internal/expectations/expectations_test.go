package expectations

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(uid, version string) metav1.Object {
	return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
}

func TestACacheIsBehindUntilItShowsTheLastWrite(t *testing.T) {
	var writes Writes
	if writes.Behind(object("a", "1")) {
		t.Error("behind, and nothing was written")
	}
	writes.Wrote(object("a", "9"))
	writes.Wrote(object("a", "10"))
	for _, c := range []struct {
		name   string
		cached metav1.Object
		want   bool
	}{
		{"an older version, though it sorts later as text", object("a", "9"), true},
		{"another object", object("b", "1"), false},
		{"what was written", object("a", "10"), false},
		{"an older version once it had caught up: a write that failed elsewhere", object("a", "9"), false},
	} {
		if got := writes.Behind(c.cached); got != c.want {
			t.Errorf("%s: behind %t, want %t", c.name, got, c.want)
		}
	}
	writes.Wrote(object("a", "12"))
	writes.Forget("a")
	if writes.Behind(object("a", "11")) {
		t.Error("a forgotten object is waited for")
	}
	writes.Wrote(object("a", "12"))
	if writes.Behind(object("a", "13")) {
		t.Error("a newer version is behind")
	}
}

func TestOnlyWhatTheLastWriteLeftIsOnesOwn(t *testing.T) {
	var writes Writes
	writes.Wrote(object("a", "9"))
	for _, c := range []struct {
		name string
		seen metav1.Object
		want bool
	}{
		{"as it was written", object("a", "9"), true},
		{"somebody wrote since", object("a", "10"), false},
		{"before it was written", object("a", "8"), false},
		{"another object", object("b", "9"), false},
	} {
		if got := writes.Own(c.seen); got != c.want {
			t.Errorf("%s: own %t, want %t", c.name, got, c.want)
		}
	}
}

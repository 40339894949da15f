package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestOnlyWhatBeganLatelyCounts(t *testing.T) {
	m := memo{entries: map[types.NamespacedName]remembered{}}
	for name, ago := range map[string]time.Duration{"old": time.Hour, "just over": longestPause, "young": time.Second, "new": 0} {
		m.entries[types.NamespacedName{Name: name}] = remembered{since: noon.Add(-ago)}
	}
	if n := m.begun(noon.Add(-longestPause)); n != 2 {
		t.Errorf("%d began lately, want young and new", n)
	}
}

// What a report would have said of children that are there must not be forgotten while it
// waits: a member that is lost meanwhile would leave them behind unnamed.
func TestTheInventoryOfAReportThatWasPutOffIsKnown(t *testing.T) {
	typer := applyconfigurations.NewTypeConverter(memberScheme)
	var m memo
	mc := memberCache()
	key := client.ObjectKeyFromObject(mc)
	desire := func() {
		t.Helper()
		if _, _, err := m.desire(typer, mc, noon); err != nil {
			t.Fatal(err)
		}
	}
	names := func(of *v1alpha1.MemberCache) (all string) {
		for _, e := range m.inventory(of) {
			all += e.Name + " "
		}
		return all
	}
	mc.Status.Inventory = []v1alpha1.InventoryEntry{{Name: "told"}}
	desire()
	if got := names(mc); got != "told " {
		t.Errorf("before: %q", got)
	}
	m.putOff(key, []v1alpha1.InventoryEntry{{Name: "told"}, {Name: "new"}})
	mc.Generation++
	desire()
	if got := names(mc); got != "told new " {
		t.Errorf("while the report waits, of a newer generation too: %q", got)
	}
	another := mc.DeepCopy()
	another.UID = "another"
	if got := names(another); got != "told " {
		t.Errorf("another MemberCache of its name: %q", got)
	}
	m.putOff(key, nil)
	if got := names(mc); got != "told " {
		t.Errorf("after it: %q", got)
	}
}

func TestAGenerationThatWasToldBeforeDoesNotBegin(t *testing.T) {
	typer := applyconfigurations.NewTypeConverter(memberScheme)
	var m memo
	mc := memberCache()
	mc.Status.State, mc.Status.ObservedGeneration = v1alpha1.MemberReady, mc.Generation
	for _, want := range []int{0, 1} {
		if _, _, err := m.desire(typer, mc, noon); err != nil {
			t.Fatal(err)
		}
		if n := m.begun(noon.Add(-time.Second)); n != want {
			t.Errorf("generation %d: %d began, want %d", mc.Generation, n, want)
		}
		mc.Generation++
	}
}

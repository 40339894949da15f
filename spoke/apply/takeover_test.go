package apply

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestDecide_TakesOverOnlyUnmarkedObjects(t *testing.T) {
	unmarked := func(u *unstructured.Unstructured) {
		annotate(u, v1alpha1.AnnotationOwner, "")
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate}})
	}
	marked := func(mark string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { annotate(u, v1alpha1.AnnotationOwner, mark) }
	}
	// The managedFields show who wrote the mark.
	edited := func(u *unstructured.Unstructured) {
		all := stored(t, nil)
		lost := applied(t, find(t, all, setKey), fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner))
		u.SetManagedFields(lost.GetManagedFields())
		annotate(u, v1alpha1.AnnotationOwner, "another/owner")
	}
	controlled := func(u *unstructured.Unstructured) {
		unmarked(u)
		u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Memcached", Name: "old", Controller: ptr.To(true)}})
	}
	slower := func(u *unstructured.Unstructured) {
		unmarked(u)
		set(u, "OrderedReady", "spec", "podManagementPolicy")
	}
	const never, matching, always = v1alpha1.TakeoverNever, v1alpha1.TakeoverIfMatching, v1alpha1.TakeoverAlways
	for _, c := range []struct {
		name, why string
		change    func(*unstructured.Unstructured)
		takeover  v1alpha1.Takeover
		known     bool
		action    Action
		text      []string
	}{
		{"Never", "the default", unmarked, never, false, Refuse, []string{"field managers are helm", "spec.takeover: IfMatching", "kubectl delete -n shop statefulset/sessions"}},
		{"no policy", "it means Never", unmarked, "", false, Refuse, []string{"spec.takeover"}},
		{"IfMatching", "a dry run decides", unmarked, matching, false, TakeOver, nil},
		{"IfMatching, and an immutable field", "no dry run is needed", slower, matching, false, Refuse, []string{"IfMatching would change its spec.podManagementPolicy", "spec.takeover: Always"}},
		{"Always", "", unmarked, always, false, TakeOver, nil},
		{"Always, and an immutable field", "the rest is applied", slower, always, false, TakeOver, nil},
		{"an object with a controller", "the message names it", controlled, never, false, Refuse, []string{"its controller is Memcached/old"}},
		{"an object of another CacheCluster", "two must never write to one object", marked("their-uid/their-member"), always, false, Refuse,
			[]string{"UID their-uid", "member their-member", "deletion.policy: Orphan", "kubectl annotate -n shop statefulset/sessions cache.reconcile-lab.io/owner-"}},
		{"an object of this CacheCluster for another member", "", marked("owner/other"), always, false, Refuse, []string{"registered as two members"}},
		{"a former child that another hub took over", "both would take it over again and again", marked("their-uid/their-member"), always, true, Refuse, []string{"was owned by this CacheCluster", "UID their-uid"}},
		{"a child whose mark another client changed", "the policy allows to restore it", edited, always, true, Correct, nil},
		{"a child whose mark another client changed, without consent", "the policy does not allow to restore it", edited, never, true, Refuse,
			[]string{"another client changed its annotation", "spec.takeover: Always", "cache.reconcile-lab.io/owner=owner/member-1"}},
		{"an unknown object whose mark another client changed", "the inventory does not list its UID", edited, always, false, Refuse, []string{"another CacheCluster, another hub"}},
		{"an object that is being deleted", "its successor is created", func(u *unstructured.Unstructured) {
			unmarked(u)
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}, always, false, Refuse, []string{"is being deleted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := find(t, stored(t, nil), setKey)
			live := storedBy(t, d)
			c.change(live)
			o := Owner{Mark: owner.Mark, Policies: v1alpha1.Policies{Takeover: c.takeover}}
			if c.known {
				o.Inventory = []v1alpha1.InventoryEntry{entry(setKey, live)}
			}
			step := decide(*d, live, &o, nil)
			if step.Action != c.action {
				t.Fatalf("%s: %s, want %s (%v)", c.why, step.Action, c.action, step.Failure)
			}
			for _, text := range c.text {
				if !strings.Contains(step.Failure.Error(), text) {
					t.Errorf("the failure is %q, want %q in it", step.Failure, text)
				}
			}
			if step.Failure != nil && (step.Failure.Reason != v1alpha1.ReasonObjectOfAnother || step.Failure.Hint == "") {
				t.Errorf("%s: %q", step.Failure.Reason, step.Failure.Hint)
			}
			if deleting := live.GetDeletionTimestamp() != nil; step.Failure != nil && step.Failure.SelfResolving != deleting {
				t.Errorf("self-resolving %t, want %t", step.Failure.SelfResolving, deleting)
			}
			if retained := reasonOf(step.Retained); step.Action == TakeOver && (retained == v1alpha1.ReasonImmutableField) != strings.Contains(c.name, "immutable field") {
				t.Errorf("retained: %q", retained)
			}
		})
	}
}

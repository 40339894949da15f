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

func TestOnlyWhatNobodyMarkedIsTakenOver(t *testing.T) {
	theirs := func(u *unstructured.Unstructured) {
		annotate(u, v1alpha1.AnnotationOwner, "")
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate}})
	}
	marked := func(mark string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { annotate(u, v1alpha1.AnnotationOwner, mark) }
	}
	// by whom an object was marked shows in its managedFields.
	edited := func(u *unstructured.Unstructured) {
		all := stored(t, nil)
		lost := applied(t, find(t, all, setKey), fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner))
		u.SetManagedFields(lost.GetManagedFields())
		annotate(u, v1alpha1.AnnotationOwner, "somebody/else")
	}
	controlled := func(u *unstructured.Unstructured) {
		theirs(u)
		u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Memcached", Name: "old", Controller: ptr.To(true)}})
	}
	slower := func(u *unstructured.Unstructured) {
		theirs(u)
		set(u, "OrderedReady", "spec", "podManagementPolicy")
	}
	const never, matching, always = v1alpha1.TakeoverNever, v1alpha1.TakeoverIfMatching, v1alpha1.TakeoverAlways
	for _, c := range []struct {
		name, why string
		change    func(*unstructured.Unstructured)
		takeover  v1alpha1.Takeover
		known     bool
		verb      Action
		says      []string
	}{
		{"Never", "the default", theirs, never, false, Refuse, []string{"field managers are helm", "spec.takeover: IfMatching", "kubectl delete -n shop statefulset/sessions"}},
		{"no policy", "it means Never", theirs, "", false, Refuse, []string{"spec.takeover"}},
		{"IfMatching", "a dry run will tell", theirs, matching, false, TakeOver, nil},
		{"IfMatching, and a field that cannot change", "no dry run is needed", slower, matching, false, Refuse, []string{"IfMatching would change its spec.podManagementPolicy", "spec.takeover: Always"}},
		{"Always", "", theirs, always, false, TakeOver, nil},
		{"Always, and a field that cannot change", "the rest is applied", slower, always, false, TakeOver, nil},
		{"under a controller", "it is named", controlled, never, false, Refuse, []string{"its controller is Memcached/old"}},
		{"of another CacheCluster", "two must never fight over one object", marked("their-uid/their-member"), always, false, Refuse,
			[]string{"UID their-uid", "member their-member", "deletion.policy: Orphan", "kubectl annotate -n shop statefulset/sessions cache.reconcile-lab.io/owner-"}},
		{"of this CacheCluster under another member's name", "", marked("owner/other"), always, false, Refuse, []string{"registered as two members"}},
		{"of another hub, which took it from us", "both would take it for ever", marked("their-uid/their-member"), always, true, Refuse, []string{"was owned by this CacheCluster", "UID their-uid"}},
		{"ours, its mark edited", "a person did it", edited, always, true, Correct, nil},
		{"ours, its mark edited, without consent", "nobody said that it is still ours", edited, never, true, Refuse,
			[]string{"another client changed its annotation", "spec.takeover: Always", "cache.reconcile-lab.io/owner=owner/member-1"}},
		{"not ours, its mark edited", "its UID is not known", edited, always, false, Refuse, []string{"another CacheCluster, another hub"}},
		{"being deleted", "what follows it is created", func(u *unstructured.Unstructured) {
			theirs(u)
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
			if step.Action != c.verb {
				t.Fatalf("%s: %s, want %s (%v)", c.why, step.Action, c.verb, step.Failure)
			}
			for _, text := range c.says {
				if !strings.Contains(step.Failure.Error(), text) {
					t.Errorf("it says %q, which should hold %q", step.Failure, text)
				}
			}
			if step.Failure != nil && (step.Failure.Reason != v1alpha1.ReasonObjectOfAnother || step.Failure.Hint == "") {
				t.Errorf("%s: %q", step.Failure.Reason, step.Failure.Hint)
			}
			if deleting := live.GetDeletionTimestamp() != nil; step.Failure != nil && step.Failure.SelfResolving != deleting {
				t.Errorf("self-resolving %t, want %t", step.Failure.SelfResolving, deleting)
			}
			if held := reasonOf(step.Retained); step.Action == TakeOver && (held == v1alpha1.ReasonImmutableField) != strings.Contains(c.name, "cannot change") {
				t.Errorf("held: %q", held)
			}
		})
	}
}

func TestWhyAnObjectIsNotTakenOverIsRememberedWhileItStaysAsItIs(t *testing.T) {
	object := storedBy(t, find(t, stored(t, nil), setKey))
	recent, why := NewWriteCache(), mismatch(setKey, object, "spec.replicas")
	recent.storeMismatch(setKey, object, "wish", why)
	if recent.mismatch(setKey, object, "wish") != why || recent.mismatch(setKey, object, "another wish") != nil {
		t.Error("the answer is for another question")
	}
	recent.storeMismatch(setKey, object, "wish", why)
	object.SetResourceVersion("11")
	if recent.mismatch(setKey, object, "wish") != nil {
		t.Error("the object has changed since")
	}
}

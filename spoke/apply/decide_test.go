package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

var (
	owner     = Owner{Mark: "owner/member-1"}
	setKey    = Key{Kind: children.StatefulSetKind, Name: "sessions"}
	budgetKey = Key{Kind: children.BudgetKind, Name: "sessions"}
	clientKey = Key{Kind: children.ServiceKind, Name: "sessions-client"}
	typer     = applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
)

// desired returns the children of a cache: a headless Service, a StatefulSet and a budget.
func desired(t testing.TB) []Desired {
	t.Helper()
	children, problems := render.Render(&v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Name: "sessions.member-1", Namespace: "shop", UID: "owner"},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "member-1"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all, err := NewDesired(typer, children)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// applied returns a child as the API server holds it after an apply, without the lost fields.
func applied(t testing.TB, d *Desired, lost ...fieldpath.Path) *unstructured.Unstructured {
	t.Helper()
	u := d.Intent.DeepCopy()
	u.SetUID(types.UID("uid-" + d.Key().String()))
	u.SetResourceVersion("10")
	raw, err := d.Fields.Difference(fieldpath.NewSet(lost...)).ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}})
	return u
}

// with sets a field and returns the object.
func with(u *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	// It fails only for a path through a value that is not an object.
	_ = unstructured.SetNestedField(u.Object, value, path...)
	return u
}

// ownedAlsoBy adds the managedFields entry of another field manager.
func ownedAlsoBy(t testing.TB, u *unstructured.Unstructured, manager string, paths ...fieldpath.Path) *unstructured.Unstructured {
	t.Helper()
	raw, err := fieldpath.NewSet(paths...).ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}))
	return u
}

func liveOf(t *testing.T, all []Desired) Live {
	t.Helper()
	live := Live{}
	for i := range all {
		live[all[i].Key()] = applied(t, &all[i])
	}
	return live
}

func inventoryOf(live Live) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for key, object := range live {
		entries = append(entries, entry(key, object))
	}
	return entries
}

func stepOf(t *testing.T, p Plan, key Key) *Step {
	t.Helper()
	for i := range p.Steps {
		if p.Steps[i].Key() == key {
			return &p.Steps[i]
		}
	}
	t.Fatalf("no step for %s", key)
	return nil
}

func annotate(u metav1.Object, key, value string) {
	annotations := u.GetAnnotations()
	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}
	u.SetAnnotations(annotations)
}

func TestDecide_ChoosesActionByLiveObject(t *testing.T) {
	all := desired(t)
	for _, c := range []struct {
		name, why string
		change    func(live Live, o *Owner)
		action    Action
		deleted   bool
		reason    string
		text      string
	}{
		{"absent", "a first apply", func(live Live, _ *Owner) { delete(live, setKey) }, Create, false, "", ""},
		{"absent, and in the inventory", "another client deleted it", func(live Live, o *Owner) {
			o.Inventory = inventoryOf(live)
			delete(live, setKey)
		}, Create, true, "", ""},
		{"as applied", "nothing to do", func(Live, *Owner) {}, None, false, "", ""},
		{"a changed intent", "the annotation names an older intent", func(live Live, _ *Owner) { annotate(live[setKey], v1alpha1.AnnotationIntent, "older") }, Update, false, "", ""},
		{"a lost field", "it drifted", func(live Live, _ *Owner) {
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"a lost field, under Report", "drift is reported only", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = with(applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), int64(7), "spec", "replicas")
		}, ReportOnly, false, "", ""},
		{"a field that was changed and reverted, under Report", "nothing differs", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = ownedAlsoBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "kubectl", fieldpath.MakePathOrDie("spec", "replicas"))
		}, None, false, "", ""},
		{"a field that was changed and reverted", "the hub reclaims it", func(live Live, o *Owner) {
			live[setKey] = ownedAlsoBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "kubectl", fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"a changed intent, under Report", "only drift stays", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
		}, Update, false, "", ""},
		{"a lost mark, under Report", "it is ordinary drift", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent))
			annotate(live[setKey], v1alpha1.AnnotationIntent, "another")
		}, ReportOnly, false, "", ""},
		{"a lost mark and a changed intent, under Report", "the mark cannot show that the intent changed", func(live Live, o *Owner) {
			o.DriftPolicy.Report, o.IntentChanged = true, true
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent))
			annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
		}, Update, false, "", ""},
		{"a lost field that an ignore rule allows", "another manager owns it", func(live Live, o *Owner) {
			o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
			live[setKey] = ownedAlsoBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "hpa", fieldpath.MakePathOrDie("spec", "replicas"))
		}, None, false, "", ""},
		{"a lost field without an owner", "an ignore rule covers owned fields only", func(live Live, o *Owner) {
			o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"being deleted", "a successor needs the name", func(live Live, _ *Owner) {
			live[setKey].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}, Wait, false, v1alpha1.ReasonChildrenTerminating, "StatefulSet/sessions is being deleted"},
		{"another owner's object", "it has no mark", func(live Live, _ *Owner) {
			annotate(live[setKey], v1alpha1.AnnotationOwner, "")
			live[setKey].SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm"}, {Manager: "argocd"}, {Manager: "helm"}, {Manager: "kcm", Subresource: "status"}})
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, "its field managers are argocd, helm"},
		{"owned by another CacheCluster", "its mark differs", func(live Live, _ *Owner) { annotate(live[setKey], v1alpha1.AnnotationOwner, "other") },
			Refuse, false, v1alpha1.ReasonObjectOfAnother, "another CacheCluster, another hub"},
		{"owned by the same CacheCluster for another member", "one cluster has two names", func(live Live, o *Owner) {
			o.Mark = "uid/one"
			for _, object := range live {
				annotate(object, v1alpha1.AnnotationOwner, "uid/one")
			}
			annotate(live[setKey], v1alpha1.AnnotationOwner, "uid/two")
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, "applied for member two"},
		{"another owner's object that is being deleted", "its deletion is not ours", func(live Live, _ *Owner) {
			annotate(live[setKey], v1alpha1.AnnotationOwner, "other")
			live[setKey].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, ""},
		{"a child without its mark", "the inventory lists its UID", func(live Live, o *Owner) {
			o.Inventory = inventoryOf(live)
			annotate(live[setKey], v1alpha1.AnnotationOwner, "")
			live[setKey].SetManagedFields(applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)).GetManagedFields())
		}, Correct, false, "", ""},
		{"a successor of the same name", "the inventory lists another UID", func(live Live, o *Owner) {
			o.Inventory = inventoryOf(live)
			annotate(live[setKey], v1alpha1.AnnotationOwner, "")
			live[setKey].SetUID("younger")
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			live, o := liveOf(t, all), owner
			c.change(live, &o)
			plan := Decide(all, live, o, nil)
			step := stepOf(t, plan, setKey)
			if step.Action != c.action || step.Deleted != c.deleted {
				t.Errorf("%s: %s (deleted %t), want %s (deleted %t)", c.why, step.Action, step.Deleted, c.action, c.deleted)
			}
			if c.reason != "" && (step.Failure == nil || step.Failure.Reason != c.reason || !strings.Contains(step.Failure.Error(), c.text)) {
				t.Errorf("%s: failure %v, want %s with %q", c.why, step.Failure, c.reason, c.text)
			}
			if c.reason == "" && step.Failure != nil {
				t.Errorf("%s: failure %v", c.why, step.Failure)
			}
			// The failure of one child does not affect the others.
			if other := stepOf(t, plan, budgetKey); other.Action != None {
				t.Errorf("the budget: %s", other.Action)
			}
			if len(plan.Prune) > 0 {
				t.Errorf("pruned: %v", plan.Prune)
			}
		})
	}
}

func TestDecide_RefusalNamesTheDeleteCommand(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	annotate(live[setKey], v1alpha1.AnnotationOwner, "")
	problem := stepOf(t, Decide(all, live, owner, nil), setKey).Failure
	if want := "kubectl delete -n shop statefulset/sessions"; !strings.Contains(problem.Hint, want) || problem.Class != v1alpha1.ClassBlocked {
		t.Errorf("%s: %q, want %q", problem.Class, problem.Hint, want)
	}
}

func TestDecide_PrunesUndesiredChildrenOfThisOwner(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	service := &unstructured.Unstructured{}
	service.SetUID("client-uid")
	service.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: owner.Mark})
	// Another client copied a child with kubectl get and kubectl create.
	copied := service.DeepCopy()
	service = ownedAlsoBy(t, service, v1alpha1.FieldManager, fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner))
	foreign := service.DeepCopy()
	foreign.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: "other"})
	remarked := foreign.DeepCopy()
	remarked.SetManagedFields(nil)
	deleting := service.DeepCopy()
	deleting.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	for _, c := range []struct {
		name, why string
		object    metav1.Object
		inventory []v1alpha1.InventoryEntry
		want      []Target
	}{
		{"a child", "its mark names the owner", service, nil, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"a child that is being deleted", "it is not deleted twice", deleting, nil, []Target{{Key: clientKey, UID: "client-uid", Deleting: true}}},
		{"another owner's object", "its mark names that owner", foreign, nil, nil},
		{"a copy", "the hub never wrote to it", copied, nil, nil},
		{"a child whose mark another client changed", "the inventory lists it", remarked, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"a former child with the mark of another hub", "the other hub wrote the mark", foreign, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, nil},
		{"a child without its label", "the inventory lists it", nil, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"another owner's object in place of a child", "the inventory lists another UID", foreign, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "older"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := Live{}
			for key, object := range live {
				with[key] = object
			}
			if c.object != nil {
				with[clientKey] = c.object
			}
			o := owner
			o.Inventory = c.inventory
			if diff := cmp.Diff(c.want, Decide(all, with, o, nil).Prune); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestTargets_ListsEachChildOnceSortedByKey(t *testing.T) {
	live := liveOf(t, desired(t))
	o := owner
	o.Inventory = inventoryOf(live)
	delete(live, budgetKey)
	var got []string
	for _, target := range Targets(live, o) {
		got = append(got, target.Key.String())
	}
	if diff := cmp.Diff([]string{"PodDisruptionBudget/sessions", "Service/sessions", "StatefulSet/sessions"}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

// Maps have no order, and the same live objects must always lead to the same plan.
func TestDecide_IgnoresOrderOfLiveObjects(t *testing.T) {
	all := desired(t)
	plan := func() string {
		live := liveOf(t, all)
		for _, name := range []string{"c", "a", "b"} {
			u := &unstructured.Unstructured{}
			u.SetUID(types.UID(name))
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: owner.Mark})
			live[Key{Kind: children.ServiceKind, Name: name}] = u
		}
		text := ""
		p := Decide(all, live, owner, nil)
		for i := range p.Steps {
			text += p.Steps[i].Key().String() + string(p.Steps[i].Action) + " "
		}
		for _, target := range p.Prune {
			text += string(target.UID)
		}
		return text
	}
	want := plan()
	for range 20 {
		if got := plan(); got != want {
			t.Fatalf("%q, then %q", want, got)
		}
	}
}

func TestDecide_PlansNothingAfterApply(t *testing.T) {
	all := desired(t)
	p := Decide(all, liveOf(t, all), owner, nil)
	for i := range p.Steps {
		if p.Steps[i].Action != None {
			t.Errorf("%s: %s", p.Steps[i].Key(), p.Steps[i].Action)
		}
	}
	if len(p.Prune) > 0 {
		t.Errorf("prune %v", p.Prune)
	}
}

// An API server of another version may never record a field under the hub's field manager.
// Such a field would otherwise be corrected at every reconcile.
func TestDecide_IgnoresFieldsThatTheMemberNeverRecords(t *testing.T) {
	all := desired(t)
	lost := fieldpath.MakePathOrDie("spec", "replicas")
	live := liveOf(t, all)
	answered := applied(t, &all[1], lost)
	live[setKey] = answered
	writes := NewWriteCache()
	if action := stepOf(t, Decide(all, live, owner, writes.Memory(live)), setKey).Action; action != Correct {
		t.Fatalf("before an apply: %s", action)
	}
	writes.learn(&all[1], answered)
	if action := stepOf(t, Decide(all, live, owner, writes.Memory(live)), setKey).Action; action != None {
		t.Errorf("after an apply without the field: %s", action)
	}
	writes.learn(&all[1], applied(t, &all[1]))
	if action := stepOf(t, Decide(all, live, owner, writes.Memory(live)), setKey).Action; action != Correct {
		t.Errorf("after an apply with all fields, a lost field is drift: %s", action)
	}
	writes.learn(&all[1], answered)
	writes.Forget(setKey, "shop", answered.GetUID())
	if memory := writes.Memory(live); len(memory) > 0 {
		t.Errorf("memory of a deleted object: %v", memory)
	}
}

var _ drift.Typer = typer

// An apply of an ignored field would take it from its owner.
func TestDecide_OmitsIgnoredFieldsFromIntent(t *testing.T) {
	all := desired(t)
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	live := liveOf(t, all)
	live[setKey] = ownedAlsoBy(t, applied(t, &all[1], replicas), "hpa", replicas)
	annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
	o := owner
	o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
	step := stepOf(t, Decide(all, live, o, nil), setKey)
	if step.Action != Update || step.Fields.Has(replicas) {
		t.Errorf("%s, replicas wanted: %t", step.Action, step.Fields.Has(replicas))
	}
	if n, found, err := unstructured.NestedInt64(step.Intent.Object, "spec", "replicas"); found || err != nil {
		t.Errorf("the intent has %d replicas: %v", n, err)
	}
	if n, found, err := unstructured.NestedInt64(all[1].Intent.Object, "spec", "replicas"); !found || err != nil {
		t.Errorf("the desired intent lost its %d replicas: %v", n, err)
	}
}

func TestOwner_OwnsLiveObject(t *testing.T) {
	all := desired(t)
	mark := fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)
	for _, c := range []struct {
		name   string
		change func(set *unstructured.Unstructured)
		known  bool
		owns   bool
	}{
		{"a child", func(*unstructured.Unstructured) {}, false, true},
		{"no mark, and in the inventory", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "") }, true, true},
		{"no mark", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "") }, false, false},
		{"another mark, by another client, and in the inventory", func(set *unstructured.Unstructured) {
			*set = *applied(t, &all[1], mark)
			annotate(set, v1alpha1.AnnotationOwner, "other/member-1")
		}, true, true},
		{"another mark, by another hub, and in the inventory", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "other/member-1") }, true, false},
		{"another mark", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "other/member-1") }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := applied(t, &all[1])
			o := owner
			if c.known {
				o.Inventory = inventoryOf(Live{setKey: set})
			}
			c.change(set)
			if got := o.Owns(set); got != c.owns {
				t.Errorf("owned: %t", got)
			}
		})
	}
}

func TestDecide_RefusalNamesReleasedObject(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	annotate(live[setKey], v1alpha1.AnnotationOwner, "")
	step := stepOf(t, Decide(all, live, owner, nil), setKey)
	if step.Action != Refuse || !strings.Contains(step.Failure.Message, "it has no owner mark, because a hub released it or another client removed the mark") {
		t.Errorf("%s: %+v", step.Action, step.Failure)
	}
}

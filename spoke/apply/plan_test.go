package apply

import (
	"context"
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
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

var (
	owner     = Owner{Mark: "owner/member-1"}
	setKey    = Key{Kind: render.StatefulSetKind, Name: "sessions"}
	budgetKey = Key{Kind: render.BudgetKind, Name: "sessions"}
	clientKey = Key{Kind: render.ServiceKind, Name: "sessions-client"}
	typer     = applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
)

// desired children of a cache with a headless Service, a StatefulSet and a budget.
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

// applied is a child as the API server holds it straight after our apply.
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

// with sets a value.
func with(u *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	// It fails where the path leads through a value that is no object.
	_ = unstructured.SetNestedField(u.Object, value, path...)
	return u
}

// heldBy adds an entry of another manager.
func heldBy(t testing.TB, u *unstructured.Unstructured, manager string, paths ...fieldpath.Path) *unstructured.Unstructured {
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

func TestEachChildGetsTheVerbThatItsLiveObjectAsksFor(t *testing.T) {
	all := desired(t)
	for _, c := range []struct {
		name, why string
		change    func(live Live, o *Owner)
		verb      Action
		deleted   bool
		reason    string
		says      string
	}{
		{"nothing there", "a first apply", func(live Live, _ *Owner) { delete(live, setKey) }, Create, false, "", ""},
		{"nothing there, and the inventory had it", "somebody deleted it", func(live Live, o *Owner) {
			o.Inventory = inventoryOf(live)
			delete(live, setKey)
		}, Create, true, "", ""},
		{"as applied", "nothing to do", func(Live, *Owner) {}, None, false, "", ""},
		{"a changed wish", "the mark is of an older intent", func(live Live, _ *Owner) { annotate(live[setKey], v1alpha1.AnnotationIntent, "older") }, Update, false, "", ""},
		{"a lost field", "it drifted", func(live Live, _ *Owner) {
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"a lost field, under Report", "it is told, and left", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = with(applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), int64(7), "spec", "replicas")
		}, ReportOnly, false, "", ""},
		{"a field that was changed and changed back, under Report", "nothing differs", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = heldBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "kubectl", fieldpath.MakePathOrDie("spec", "replicas"))
		}, None, false, "", ""},
		{"a field that was changed and changed back", "it is made ours again", func(live Live, o *Owner) {
			live[setKey] = heldBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "kubectl", fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"a changed wish, under Report", "only drift is left", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
		}, Update, false, "", ""},
		{"a lost mark, under Report", "it is drift like any other", func(live Live, o *Owner) {
			o.DriftPolicy.Report = true
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent))
			annotate(live[setKey], v1alpha1.AnnotationIntent, "another")
		}, ReportOnly, false, "", ""},
		{"a lost mark and a changed wish, under Report", "the mark can't tell that the wish changed", func(live Live, o *Owner) {
			o.DriftPolicy.Report, o.IntentChanged = true, true
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationIntent))
			annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
		}, Update, false, "", ""},
		{"a lost field that another manager may keep", "an ignore rule says so", func(live Live, o *Owner) {
			o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
			live[setKey] = heldBy(t, applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas")), "hpa", fieldpath.MakePathOrDie("spec", "replicas"))
		}, None, false, "", ""},
		{"a lost field that nobody holds", "an ignore rule is about what others hold", func(live Live, o *Owner) {
			o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
			live[setKey] = applied(t, &all[1], fieldpath.MakePathOrDie("spec", "replicas"))
		}, Correct, false, "", ""},
		{"being deleted", "a new one can only come once it is gone", func(live Live, _ *Owner) {
			live[setKey].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}, Wait, false, v1alpha1.ReasonChildrenTerminating, "StatefulSet/sessions is being deleted"},
		{"of somebody else", "it carries no mark", func(live Live, _ *Owner) {
			annotate(live[setKey], v1alpha1.AnnotationOwner, "")
			live[setKey].SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm"}, {Manager: "argocd"}, {Manager: "helm"}, {Manager: "kcm", Subresource: "status"}})
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, "its field managers are argocd, helm"},
		{"of another CacheCluster", "its mark is another", func(live Live, _ *Owner) { annotate(live[setKey], v1alpha1.AnnotationOwner, "other") },
			Refuse, false, v1alpha1.ReasonObjectOfAnother, "another CacheCluster, another hub"},
		{"of the same CacheCluster for another member", "one cluster has two names", func(live Live, o *Owner) {
			o.Mark = "uid/one"
			for _, object := range live {
				annotate(object, v1alpha1.AnnotationOwner, "uid/one")
			}
			annotate(live[setKey], v1alpha1.AnnotationOwner, "uid/two")
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, "applied for member two"},
		{"being deleted by somebody else", "it is not ours to wait for", func(live Live, _ *Owner) {
			annotate(live[setKey], v1alpha1.AnnotationOwner, "other")
			live[setKey].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}, Refuse, false, v1alpha1.ReasonObjectOfAnother, ""},
		{"ours without its mark", "the inventory's UID knows it", func(live Live, o *Owner) {
			o.Inventory = inventoryOf(live)
			annotate(live[setKey], v1alpha1.AnnotationOwner, "")
			live[setKey].SetManagedFields(applied(t, &all[1], fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)).GetManagedFields())
		}, Correct, false, "", ""},
		{"a namesake after ours", "the inventory's UID is another", func(live Live, o *Owner) {
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
			if step.Action != c.verb || step.Deleted != c.deleted {
				t.Errorf("%s: %s (deleted %t), want %s (deleted %t)", c.why, step.Action, step.Deleted, c.verb, c.deleted)
			}
			if c.reason != "" && (step.Failure == nil || step.Failure.Reason != c.reason || !strings.Contains(step.Failure.Error(), c.says)) {
				t.Errorf("%s: problem %v, want %s with %q", c.why, step.Failure, c.reason, c.says)
			}
			if c.reason == "" && step.Failure != nil {
				t.Errorf("%s: problem %v", c.why, step.Failure)
			}
			// One child's trouble says nothing about the others.
			if other := stepOf(t, plan, budgetKey); other.Action != None {
				t.Errorf("the budget: %s", other.Action)
			}
			if len(plan.Prune) > 0 {
				t.Errorf("to be pruned: %v", plan.Prune)
			}
		})
	}
}

func TestARefusalTellsHowToGetRidOfTheObject(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	annotate(live[setKey], v1alpha1.AnnotationOwner, "")
	problem := stepOf(t, Decide(all, live, owner, nil), setKey).Failure
	if want := "kubectl delete -n shop statefulset/sessions"; !strings.Contains(problem.Hint, want) || problem.Class != v1alpha1.ClassBlocked {
		t.Errorf("%s: %q, want %q", problem.Class, problem.Hint, want)
	}
}

func TestPrunedIsWhatIsOursAndNotWanted(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	service := &unstructured.Unstructured{}
	service.SetUID("client-uid")
	service.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: owner.Mark})
	// Somebody made this of a child of ours, with kubectl get and create.
	copied := service.DeepCopy()
	service = heldBy(t, service, v1alpha1.FieldManager, fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner))
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
		{"ours", "its mark says so", service, nil, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"ours, on its way out", "it is not deleted twice", deleting, nil, []Target{{Key: clientKey, UID: "client-uid", Deleting: true}}},
		{"another's", "its mark says so", foreign, nil, nil},
		{"a copy", "the hub never wrote to it", copied, nil, nil},
		{"ours, remarked by a person", "the inventory knows it", remarked, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"ours before, with another's mark by another hub", "the other hub wrote it", foreign, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, nil},
		{"ours, without its label", "the inventory knows it", nil, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "client-uid"}}, []Target{{Key: clientKey, UID: "client-uid"}}},
		{"another's where ours was", "the inventory's UID is another", foreign, []v1alpha1.InventoryEntry{{Kind: "Service", Name: "sessions-client", UID: "older"}}, nil},
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

func TestEveryChildIsATargetOfDeletionOnceInTheOrderOfKeys(t *testing.T) {
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

// Maps have no order, so the same live objects must give the same plan each time.
func TestTheOrderOfLiveObjectsDoesNotShow(t *testing.T) {
	all := desired(t)
	plan := func() string {
		live := liveOf(t, all)
		for _, name := range []string{"c", "a", "b"} {
			u := &unstructured.Unstructured{}
			u.SetUID(types.UID(name))
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: owner.Mark})
			live[Key{Kind: render.ServiceKind, Name: name}] = u
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

func TestAfterWhatWasAppliedNothingIsPlanned(t *testing.T) {
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

// An API server of another version that never puts a field under our name would
// otherwise be repaired for ever.
func TestAFieldThatTheMemberNeverGaveUsIsNoDrift(t *testing.T) {
	all := desired(t)
	lost := fieldpath.MakePathOrDie("spec", "replicas")
	live := liveOf(t, all)
	answered := applied(t, &all[1], lost)
	live[setKey] = answered
	recent := NewWriteCache()
	if verb := stepOf(t, Decide(all, live, owner, recent.Memory(live)), setKey).Action; verb != Correct {
		t.Fatalf("before the lesson: %s", verb)
	}
	recent.learn(&all[1], answered)
	if verb := stepOf(t, Decide(all, live, owner, recent.Memory(live)), setKey).Action; verb != None {
		t.Errorf("after the lesson: %s", verb)
	}
	recent.learn(&all[1], applied(t, &all[1]))
	if verb := stepOf(t, Decide(all, live, owner, recent.Memory(live)), setKey).Action; verb != Correct {
		t.Errorf("after an apply that got everything, a lost field is drift: %s", verb)
	}
	recent.learn(&all[1], answered)
	recent.Forget(setKey, "shop", answered.GetUID())
	if memory := recent.Memory(live); len(memory) > 0 {
		t.Errorf("memory of a deleted object: %v", memory)
	}
}

func TestRecentStandsInForACacheThatIsBehind(t *testing.T) {
	object := func(uid, version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(version)
		return u
	}
	for _, c := range []struct {
		name, why      string
		cached         metav1.Object
		newer, latest  string
		stillRemembers bool
	}{
		{"an older one in the cache", "what was written counts", object("a", "9"), "10", "10", true},
		{"the same one in the cache", "the cache has caught up", object("a", "10"), "10", "10", false},
		{"a newer one in the cache", "somebody wrote after us", object("a", "11"), "11", "11", false},
		{"another object in the cache", "ours was deleted and made anew", object("b", "11"), "11", "11", false},
		{"the predecessor in the cache", "we deleted it and made it anew", object("b", "9"), "10", "10", true},
		{"none in the cache", "only who asks for the latest gets what was written", nil, "", "10", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			version := func(o metav1.Object) string {
				if o == nil {
					return ""
				}
				return o.GetResourceVersion()
			}
			recent := NewWriteCache()
			recent.Store(setKey, "shop", object("a", "10"))
			if got := version(recent.Refresh(setKey, "shop", c.cached)); got != c.newer {
				t.Errorf("%s: newer is %q, want %q", c.why, got, c.newer)
			}
			if got := version(recent.Latest(setKey, "shop", c.cached)); got != c.latest {
				t.Errorf("%s: latest is %q, want %q", c.why, got, c.latest)
			}
			if got := version(recent.Latest(setKey, "shop", nil)) != ""; got != c.stillRemembers {
				t.Errorf("%s: still remembered %t, want %t", c.why, got, c.stillRemembers)
			}
			if got := recent.Latest(setKey, "elsewhere", nil); got != nil {
				t.Errorf("another namespace sees %v", got)
			}
			recent.Forget(setKey, "shop", "a")
			if got := recent.Latest(setKey, "shop", nil); got != nil {
				t.Errorf("remembered after it was deleted: %v", got)
			}
		})
	}
}

func TestALookAtWhatWasWrittenDoesNotMeanThatTheCacheHasIt(t *testing.T) {
	object := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetResourceVersion(version)
		return u
	}
	recent := NewWriteCache()
	recent.Store(setKey, "shop", object("10"))
	seen := recent.Refresh(setKey, "shop", object("9"))
	recent.Latest(setKey, "shop", seen)
	if got := recent.Refresh(setKey, "shop", object("9")).GetResourceVersion(); got != "10" {
		t.Errorf("the cache still shows version 9 and it counts as %q: its drift would be put right twice", got)
	}
}

var _ drift.Typer = typer

// What is left to another manager is not applied, or the next apply would take it.
func TestWhatIsYieldedIsNotInTheIntentThatIsApplied(t *testing.T) {
	all := desired(t)
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	live := liveOf(t, all)
	live[setKey] = heldBy(t, applied(t, &all[1], replicas), "hpa", replicas)
	annotate(live[setKey], v1alpha1.AnnotationIntent, "older")
	o := owner
	o.Typer, o.DriftPolicy.Ignore = typer, []drift.Rule{{Path: "spec.replicas"}}
	step := stepOf(t, Decide(all, live, o, nil), setKey)
	if step.Action != Update || step.Fields.Has(replicas) {
		t.Errorf("%s, replicas wanted: %t", step.Action, step.Fields.Has(replicas))
	}
	if n, found, err := unstructured.NestedInt64(step.Intent.Object, "spec", "replicas"); found || err != nil {
		t.Errorf("%d replicas would be applied: %v", n, err)
	}
	if n, found, err := unstructured.NestedInt64(all[1].Intent.Object, "spec", "replicas"); !found || err != nil {
		t.Errorf("the intent itself lost its %d replicas: %v", n, err)
	}
}

func TestWhoseALiveObjectIs(t *testing.T) {
	all := desired(t)
	mark := fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)
	for _, c := range []struct {
		name   string
		change func(set *unstructured.Unstructured)
		known  bool
		owns   bool
	}{
		{"ours", func(*unstructured.Unstructured) {}, false, true},
		{"without a mark, and known", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "") }, true, true},
		{"without a mark", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "") }, false, false},
		{"another mark, by a person, and known", func(set *unstructured.Unstructured) {
			*set = *applied(t, &all[1], mark)
			annotate(set, v1alpha1.AnnotationOwner, "other/member-1")
		}, true, true},
		{"another mark, by another hub, and known", func(set *unstructured.Unstructured) { annotate(set, v1alpha1.AnnotationOwner, "other/member-1") }, true, false},
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

func TestWhatAHubReleasedIsNotSaidToBeOfStrangers(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	annotate(live[setKey], v1alpha1.AnnotationOwner, "")
	step := stepOf(t, Decide(all, live, owner, nil), setKey)
	if step.Action != Refuse || !strings.Contains(step.Failure.Message, "it has no owner mark, because a hub released it or another client removed the mark") {
		t.Errorf("%s: %+v", step.Action, step.Failure)
	}
}

func TestAChildThatIsClaimedIsWaitedFor(t *testing.T) {
	all := desired(t)
	steps := []Step{{Desired: all[0]}, {Desired: all[1]}}
	r := NewWriteCache()
	release, late := r.claims.acquire(t.Context(), "shop", steps)
	if late != nil {
		t.Fatal(late)
	}
	if other, late := r.claims.acquire(t.Context(), "stock", steps); late != nil {
		t.Errorf("another namespace is kept waiting: %v", late)
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
		t.Errorf("%d claims are left", len(r.claims.claimed))
	}
}

func TestRecentIsAheadUntilTheCacheShowsWhatWasWritten(t *testing.T) {
	set := liveOf(t, desired(t))[setKey]
	inventory := inventoryOf(Live{setKey: set})
	r := NewWriteCache()
	if r.Pending("shop", inventory) {
		t.Error("ahead before anything was written")
	}
	r.Store(setKey, "shop", set)
	if !r.Pending("shop", inventory) || r.Pending("stock", inventory) || r.Pending("shop", nil) {
		t.Error("what was written is not in the cache yet")
	}
	r.Refresh(setKey, "shop", nil)
	if !r.Pending("shop", inventory) {
		t.Error("the cache does not show it")
	}
	r.Refresh(setKey, "shop", set)
	if r.Pending("shop", inventory) {
		t.Error("the cache shows it")
	}
}

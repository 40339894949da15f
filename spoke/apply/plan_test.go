package apply

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// scenario is a plan with a member that it is executed in. Two calls of its function return
// equal plans that share no object.
type scenario struct {
	name string
	plan func(t *testing.T) Plan
	// live returns the objects of the member.
	live func(t *testing.T) Live
}

// scenarios cover every action of a plan.
func scenarios() []scenario {
	replicasPath := fieldpath.MakePathOrDie("spec", "replicas")
	drifted := func(t *testing.T) Live {
		all, live := desired(t), Live{}
		for i := range all {
			live[all[i].Key()] = typed(t, applied(t, &all[i]))
		}
		live[setKey] = typed(t, with(ownedAlsoBy(t, applied(t, &all[1], replicasPath), "kubectl", replicasPath), int64(7), "spec", "replicas"))
		return live
	}
	unmarked := func(t *testing.T) Live {
		live := drifted(t)
		for _, object := range live {
			annotate(object, v1alpha1.AnnotationOwner, "")
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate}})
		}
		return live
	}
	pruned := func(t *testing.T) Live {
		live := drifted(t)
		all := desired(t)
		service := applied(t, &all[0])
		service.SetName("sessions-client")
		service.SetUID("client-uid")
		live[clientKey] = typed(t, service)
		return live
	}
	immutable := func(t *testing.T) Live {
		live := Live{}
		for _, d := range stored(t, nil) {
			live[d.Key()] = typed(t, storedBy(t, &d))
		}
		return live
	}
	decided := func(live func(*testing.T) Live, change func(o *Owner)) func(t *testing.T) Plan {
		return func(t *testing.T) Plan {
			shown, o := live(t), owner
			o.Typer, o.Inventory = typer, inventoryOf(shown)
			slices.SortFunc(o.Inventory, func(a, b v1alpha1.InventoryEntry) int { return strings.Compare(string(a.UID), string(b.UID)) })
			change(&o)
			return Decide(desired(t), shown, o, nil)
		}
	}
	none := func(*testing.T) Live { return Live{} }
	keep := func(*Owner) {}
	return []scenario{
		{"a new cache", decided(none, keep), none},
		{"a new cache whose children belong to another owner", decided(none, keep), unmarked},
		{"a takeover of matching objects", decided(none, func(o *Owner) { o.Policies.Takeover = v1alpha1.TakeoverIfMatching }), unmarked},
		{"a takeover of any objects", decided(none, func(o *Owner) { o.Policies.Takeover = v1alpha1.TakeoverAlways }), unmarked},
		{"drift", decided(drifted, keep), drifted},
		{"drift that is only reported", decided(drifted, func(o *Owner) { o.DriftPolicy.Report = true }), drifted},
		{"drift of replicas that an ignore rule allows", decided(drifted, func(o *Owner) { o.DriftPolicy.Ignore = []drift.Rule{{Path: "spec.replicas"}} }), drifted},
		{"deleted children", decided(none, func(o *Owner) {
			o.Inventory = []v1alpha1.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Name: "sessions", UID: "old"}}
		}), none},
		{"a child to be pruned", decided(pruned, keep), pruned},
		{"an immutable change with consent that is noted", decided(immutable, func(o *Owner) {
			o.Policies.Recreate = v1alpha1.RecreateOrphanPods
			for i := range o.Inventory {
				o.Inventory[i].Recreating = true
			}
		}), immutable},
		{"an immutable change without consent", decided(immutable, keep), immutable},
	}
}

// A plan can be shown before it is executed only if no stage changes it.
func TestPlan_StaysUnchangedByResolveAndExecute(t *testing.T) {
	executed := map[Action]bool{}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			decided, want := s.plan(t), s.plan(t)
			if !reflect.DeepEqual(decided, want) {
				t.Fatal("two decisions from equal inputs differ")
			}
			a := New(Options{Client: memberWith(t, s.live(t)), Namespace: "shop", Defer: func(*Step) bool { return strings.Contains(s.name, "deleted") }})
			resolved, err := a.Resolve(t.Context(), decided)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(decided, want) {
				t.Errorf("Resolve changed its plan:\n%s\nwant\n%s", decided, want)
			}
			before := copyPlan(t, resolved)
			results := a.Execute(t.Context(), resolved)
			if !reflect.DeepEqual(resolved, before) {
				t.Errorf("Execute changed its plan:\n%s\nwant\n%s", resolved, before)
			}
			if !reflect.DeepEqual(decided, want) {
				t.Errorf("Execute changed the plan before Resolve:\n%s\nwant\n%s", decided, want)
			}
			if len(results) < len(resolved.Steps) {
				t.Errorf("%d results for %d steps", len(results), len(resolved.Steps))
			}
			for i := range results {
				executed[results[i].Action] = true
			}
		})
	}
	for _, action := range []Action{None, Create, Update, Correct, ReportOnly, TakeOver, Recreate, Refuse, Prune} {
		if !executed[action] {
			t.Errorf("no scenario executes %q", action)
		}
	}
}

// copyPlan returns a deep copy of what a stage could change in a plan.
func copyPlan(t *testing.T, p Plan) Plan {
	t.Helper()
	copied := p
	copied.Steps = nil
	for _, step := range p.Steps {
		step.Intent = step.Intent.DeepCopy()
		step.original.Intent = step.original.Intent.DeepCopy()
		if step.Live != nil {
			step.Live = step.Live.(client.Object).DeepCopyObject().(metav1.Object)
		}
		if step.Failure != nil {
			f := *step.Failure
			step.Failure = &f
		}
		if step.Retained != nil {
			f := *step.Retained
			step.Retained = &f
		}
		copied.Steps = append(copied.Steps, step)
	}
	return copied
}

func TestPlan_PrintsActionsObjectsAndFields(t *testing.T) {
	all, live := desired(t), liveOf(t, desired(t))
	replicasPath := fieldpath.MakePathOrDie("spec", "replicas")
	live[setKey] = with(ownedAlsoBy(t, applied(t, &all[1], replicasPath), "kubectl", replicasPath), int64(7), "spec", "replicas")
	annotate(live[budgetKey], v1alpha1.AnnotationOwner, "other/member-1")
	client := &unstructured.Unstructured{}
	client.SetUID("client-uid")
	client.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: owner.Mark})
	live[clientKey] = ownedAlsoBy(t, client, v1alpha1.FieldManager, fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner))
	want := []string{
		"ACTION   OBJECT                        DETAIL",
		"none     Service/sessions",
		"correct  StatefulSet/sessions          spec.replicas",
		"refuse   PodDisruptionBudget/sessions  ObjectOfAnother: metadata.name: \"sessions\": PodDisruptionBudget/sessions already exists and is owned by CacheCluster UID other",
		"prune    Service/sessions-client       not desired",
	}
	got := strings.Split(Decide(all, live, owner, nil).String(), "\n")
	for i, line := range want {
		if !strings.HasPrefix(got[i], line) {
			t.Errorf("line %d is %q, want %q", i, got[i], line)
		}
	}
}

// The order of steps is that of the children: the StatefulSet comes after its Service.
func TestPlan_FirstIsTheStatefulSet(t *testing.T) {
	plan := Decide(desired(t), Live{}, owner, nil)
	if first := plan.first(); first < 0 || plan.Steps[first].Key().Kind != children.StatefulSetKind {
		t.Errorf("first step %d of %s", first, plan)
	}
}

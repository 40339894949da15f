package apply

import (
	"fmt"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Key of a child within its MemberCache's namespace.
type Key struct {
	Kind schema.GroupVersionKind
	Name string
}

func (k Key) String() string { return k.Kind.Kind + "/" + k.Name }

// Desired is one child that shall be there.
type Desired struct {
	render.Child
	// Wanted is the set of fields that we own once the intent is applied.
	Wanted *drift.Fields

	typer drift.Typer
}

// Key of the child.
func (d *Desired) Key() Key {
	return Key{Kind: d.Intent.GroupVersionKind(), Name: d.Intent.GetName()}
}

// Desire computes what each child owns once it is applied.
func NewDesired(t drift.Typer, children []render.Child) ([]Desired, error) {
	desired := make([]Desired, 0, len(children))
	for _, child := range children {
		wanted, err := drift.Wanted(t, child.Intent)
		if err != nil {
			return nil, err
		}
		desired = append(desired, Desired{Child: child, Wanted: wanted, typer: t})
	}
	return desired, nil
}

// Live is what the member holds under our labels, by key. The objects may be shared with
// a cache, and so may be what is made of them, such as Step.Live and Change.Found: they
// must not be changed.
type Live map[Key]metav1.Object

// Action is what is to be done with a child.
type Action string

// The verbs of a plan.
const (
	None    Action = "keep"
	Create  Action = "create"
	Update  Action = "update"
	Correct Action = "repair"
	Wait    Action = "wait"
	Refuse  Action = "refuse"
	// RemoveForeign: others added fields to the pod template, which are removed.
	RemoveForeign Action = "strip"
	// ReportOnly: it differs, and that is not put right.
	ReportOnly Action = "leave"
	Prune      Action = "prune"
	// Recreate deletes a child whose field cannot change in place and creates it
	// anew. Of a StatefulSet the pods stay.
	Recreate Action = "recreate"
	// TakeOver makes an object ours that was there before.
	TakeOver Action = "take over"
)

// Step is the decision for one child.
type Step struct {
	Desired
	Action Action
	Drift  drift.Finding
	// Foreign are fields that others added to the pod template, unless they may stay.
	Foreign *drift.Fields
	// Deferred: it is fought over, and left for now.
	Deferred bool
	// Live object that was found, or nil.
	Live metav1.Object
	// Deleted: the inventory holds the child, the member does not.
	Deleted bool
	// Problem says why the child is refused or waited for.
	Failure *failure.Failure
	// Retained names the fields that cannot change in place; the intent then has the live
	// values there, so that the rest is applied all the same.
	Retained *failure.Failure
	// Recreating: the inventory says that this child is being recreated.
	Recreating bool

	// unguarded: the member cannot be asked to create or fail.
	unguarded bool

	// wish is what was desired, with nothing held.
	wish Desired
}

// Plan is what to do in one member for one MemberCache.
type Plan struct {
	Steps []Step
	// Prune are children of this owner that are not wanted any more, sorted.
	Prune []Target
}

// Target is an object to be removed, by UID.
type Target struct {
	Key Key
	UID types.UID
	// Deleting: the API server is removing it already.
	Deleting bool

	// Propagation of its deletion; foreground if empty.
	Propagation metav1.DeletionPropagation
}

// Memory is what the last applies taught: per child UID the fields that the
// member did not put under our name although our apply succeeded.
type Memory interface {
	Known(uid, hash string) *drift.Fields
}

// Owner marks the children of one MemberCache.
type Owner struct {
	// Mark that every child carries, see render.OwnerMark.
	Mark string
	// Inventory of the children that were applied before.
	Inventory []v1alpha1.InventoryEntry
	// Drift is what to do about drift, and Typer, which it needs, knows the schema of
	// the children.
	DriftPolicy drift.Policy
	Typer       drift.Typer
	// IntentChanged: the wish changed since it was last carried out in full.
	IntentChanged bool
	// Policies say what may be done about what stands in the way.
	Policies v1alpha1.Policies
}

// Decide plans each desired child against the live ones and everything else of
// this owner for pruning. The result does not depend on the order of live.
func Decide(desired []Desired, live Live, owner Owner, memory Memory) Plan {
	plan := Plan{}
	wanted := map[Key]bool{}
	for i := range desired {
		key := desired[i].Key()
		wanted[key] = true
		plan.Steps = append(plan.Steps, decide(desired[i], live[key], owner, memory))
	}
	for _, target := range Targets(live, owner) {
		if !wanted[target.Key] {
			plan.Prune = append(plan.Prune, target)
		}
	}
	return plan
}

// Targets are all children of an owner: the live ones that are its own, and
// those of its inventory that the cache does not show (somebody may have removed
// the label by which it finds them). A copy that somebody made of one, with its mark and
// all, is nobody's child: the hub never wrote to it. Sorted by key.
func Targets(live Live, owner Owner) []Target {
	var targets []Target
	for key, object := range live {
		if object != nil && owner.has(key, object) {
			targets = append(targets, Target{Key: key, UID: object.GetUID(), Deleting: object.GetDeletionTimestamp() != nil})
		}
	}
	for _, e := range owner.Inventory {
		key := keyOf(e)
		if live[key] == nil {
			targets = append(targets, Target{Key: key, UID: e.UID})
		}
	}
	sort.Slice(targets, func(i, j int) bool { return targets[i].Key.String() < targets[j].Key.String() })
	return targets
}

// has says that a live object is a child of this owner: one that it knows, in the place of
// one that it knows, or one that the hub wrote to.
func (o Owner) has(key Key, live metav1.Object) bool {
	if !ownedBy(live, o) {
		// A whole mark is that of another CacheCluster, which may be about to take it over.
		_, _, whole := strings.Cut(live.GetAnnotations()[v1alpha1.AnnotationOwner], "/")
		return !whole && o.remarked(live)
	}
	_, known := o.entry(key)
	return known || drift.Written(live)
}

func keyOf(e v1alpha1.InventoryEntry) Key {
	for _, kind := range render.Kinds {
		if kind.Group == e.Group && kind.Kind == e.Kind {
			return Key{Kind: kind, Name: e.Name}
		}
	}
	return Key{Kind: schema.GroupVersionKind{Group: e.Group, Version: "v1", Kind: e.Kind}, Name: e.Name}
}

func decide(d Desired, live metav1.Object, owner Owner, memory Memory) Step {
	step := Step{Desired: d, Live: live, wish: d}
	noted, known := owner.entry(d.Key())
	step.Recreating = noted.Recreating
	var stuck []Stuck
	if live != nil {
		step.Desired, stuck = hold(d, live)
	}
	switch {
	case live == nil:
		step.Action, step.Deleted = Create, known && !noted.Recreating
	case !ownedBy(live, owner):
		step.meet(owner, stuck)
	case live.GetDeletionTimestamp() != nil && noted.Recreating:
		step.Action, step.Failure = Wait, recreating(d.Key())
	case live.GetDeletionTimestamp() != nil:
		step.Action, step.Failure = Wait, &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonChildrenTerminating,
			Message: fmt.Sprintf("%s is being deleted in the member; it is created anew once it is gone", d.Key())}
	case owner.mayRecreate(stuck):
		step.Desired, step.Action, step.Failure = d, Recreate, recreating(d.Key())
	default:
		step.Retained = immutable(d.Key(), live.GetNamespace(), stuck)
		step.diff(owner, memory)
	}
	return step
}

// diff decides about a child that is there and ours.
func (s *Step) diff(owner Owner, memory Memory) {
	uid := string(s.Live.GetUID())
	s.Foreign = owner.DriftPolicy.ForeignFields(s.Intent.GetKind(), s.Wanted, s.Live)
	if settled := memory.Known(uid, settledForeign); settled != nil && s.Foreign != nil {
		s.Foreign = s.Foreign.Difference(settled)
	}
	if err := s.yield(&owner); err != nil {
		s.Action, s.Failure = Wait, failure.Of(err, "read", s.Key().String())
		return
	}
	s.Drift = drift.Diff(s.Wanted, s.Hash, s.Live, memory.Known(uid, s.Hash))
	if _, _, altered := s.altered(s.Live, &owner.DriftPolicy); altered && s.Drift.Clean() {
		s.Drift.Missing = drift.NewFields(replicas)
	}
	switch {
	case s.Drift.Clean() && s.stranger() && owner.DriftPolicy.Foreign == v1alpha1.ForeignRemove && !owner.DriftPolicy.Report:
		s.Action = RemoveForeign
	case s.Drift.Clean():
		s.Action = None
	case s.Drift.Changed || owner.DriftPolicy.Report && owner.IntentChanged && s.Drift.LostMark():
		s.Action = Update
	case owner.DriftPolicy.Report && s.reclaims():
		s.Action = None
	case owner.DriftPolicy.Report:
		s.Action = ReportOnly
	default:
		s.Action = Correct
	}
}

// stranger says that the pod template holds foreign fields.
func (s *Step) stranger() bool { return s.Foreign != nil && !s.Foreign.Empty() }

// yield takes out of the intent what others may keep.
func (s *Step) yield(owner *Owner) error {
	yielded := owner.DriftPolicy.Yield(s.Intent.GetKind(), s.Wanted, s.Live)
	if yielded.Empty() {
		return nil
	}
	intent, err := drift.Without(owner.Typer, s.Intent, yielded)
	if err != nil {
		return err
	}
	left, err := drift.Wanted(owner.Typer, intent)
	if err != nil {
		return err
	}
	// What is held was not wanted before either.
	s.Intent, s.Wanted = intent, left.Intersection(s.Wanted)
	return nil
}

// entry of the inventory, if there is one.
func (o Owner) entry(key Key) (v1alpha1.InventoryEntry, bool) {
	for _, e := range o.Inventory {
		if keyOf(e) == key {
			return e, true
		}
	}
	return v1alpha1.InventoryEntry{}, false
}

// Owns says whether a live object is a child of this owner, also one whose mark a person
// changed.
func (o Owner) Owns(live metav1.Object) bool { return ownedBy(live, o) || o.remarked(live) }

// ownedBy tells our children from those of others. The mark decides; where
// somebody removed the mark, the inventory's UID does, and where somebody changed
// it, the UID with the consent to take over.
func ownedBy(live metav1.Object, owner Owner) bool {
	mark, marked := live.GetAnnotations()[v1alpha1.AnnotationOwner]
	switch {
	case !marked:
		return owner.knows(live)
	case mark == owner.Mark:
		return true
	default:
		return owner.Policies.Takeover == v1alpha1.TakeoverAlways && owner.remarked(live)
	}
}

func managersOf(live metav1.Object) string {
	seen := map[string]bool{}
	var names []string
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" && !seen[e.Manager] {
			seen[e.Manager] = true
			names = append(names, e.Manager)
		}
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

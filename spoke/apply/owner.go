package apply

import (
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Owner is the MemberCache that owns the children of a plan.
type Owner struct {
	// Mark is the owner mark that every child carries, see children.OwnerMark.
	Mark string
	// Inventory lists the children that were applied before.
	Inventory []v1alpha1.InventoryEntry
	// DriftPolicy is the policy for drift. Typer knows the schema of the children.
	DriftPolicy drift.Policy
	Typer       drift.Typer
	// IntentChanged is true where the intent changed since it was last applied completely.
	IntentChanged bool
	// Policies are the policies for takeover and recreation.
	Policies v1alpha1.Policies
}

// Owns reports whether a live object is a child of this owner, also where another client
// changed its owner mark.
func (o Owner) Owns(live metav1.Object) bool { return o.ownsMarked(live) || o.remarked(live) }

// Recreating returns the child that is being recreated, if there is one.
func (o Owner) Recreating() (Target, bool) {
	for _, e := range o.Inventory {
		if e.Recreating {
			return Target{Key: keyOf(e), UID: e.UID}, true
		}
	}
	return Target{}, false
}

// Targets returns all children of an owner, sorted by key. These are the live objects that
// it owns, and the entries of its inventory that the cache does not show. Another client may
// have removed the label of the latter. A copy of a child with its mark is no child: the hub
// never wrote to it.
func Targets(live Live, owner Owner) []Target {
	var targets []Target
	for key, object := range live {
		if object != nil && owner.hasChild(key, object) {
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

// hasChild reports whether a live object is a child of this owner: the inventory lists its
// key or its UID, or the hub wrote to it.
func (o *Owner) hasChild(key Key, live metav1.Object) bool {
	if !o.ownsMarked(live) {
		// A complete mark names another CacheCluster, which may be about to take the object over.
		_, _, complete := strings.Cut(live.GetAnnotations()[v1alpha1.AnnotationOwner], "/")
		return !complete && o.remarked(live)
	}
	_, known := o.entry(key)
	return known || drift.OwnsAny(live)
}

// ownsMarked reports whether the owner mark makes a live object a child. Without a mark,
// the UID in the inventory decides. With a changed mark, the UID decides if the takeover
// policy is Always.
func (o *Owner) ownsMarked(live metav1.Object) bool {
	mark, marked := live.GetAnnotations()[v1alpha1.AnnotationOwner]
	switch {
	case !marked:
		return o.knows(live)
	case mark == o.Mark:
		return true
	default:
		return o.Policies.Takeover == v1alpha1.TakeoverAlways && o.remarked(live)
	}
}

// remarked reports whether another client changed the mark of a child. A mark that the
// hub's field manager owns was written by another hub, which reconciles the object too.
func (o *Owner) remarked(live metav1.Object) bool {
	return o.knows(live) && !drift.Owns(live, ownerMark)
}

// knows reports whether the inventory lists the UID of a live object.
func (o *Owner) knows(live metav1.Object) bool {
	for _, e := range o.Inventory {
		if e.UID == live.GetUID() {
			return true
		}
	}
	return false
}

// entry returns the inventory entry of a key, if there is one.
func (o *Owner) entry(key Key) (v1alpha1.InventoryEntry, bool) {
	for _, e := range o.Inventory {
		if keyOf(e) == key {
			return e, true
		}
	}
	return v1alpha1.InventoryEntry{}, false
}

func keyOf(e v1alpha1.InventoryEntry) Key {
	for _, kind := range children.Kinds {
		if kind.Group == e.Group && kind.Kind == e.Kind {
			return Key{Kind: kind, Name: e.Name}
		}
	}
	return Key{Kind: schema.GroupVersionKind{Group: e.Group, Version: "v1", Kind: e.Kind}, Name: e.Name}
}

func entry(key Key, object metav1.Object) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{Group: key.Kind.Group, Kind: key.Kind.Kind, Name: key.Name, UID: object.GetUID()}
}

func (t Target) entry() v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{Group: t.Key.Kind.Group, Kind: t.Key.Kind.Kind, Name: t.Key.Name, UID: t.UID}
}

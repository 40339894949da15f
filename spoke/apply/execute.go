package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Applier carries plans out in one member.
type Applier struct {
	// Client writes to the member. Reader reads from its API server itself: what the
	// cache calls absent is looked up there.
	Client client.Client
	Reader client.Reader
	// Writes takes what was written, for reads that come before the cache has it.
	Writes *WriteCache
	// Namespace of the children; CreateNamespace creates it where it is missing.
	Namespace       string
	CreateNamespace bool
	Owner           Owner
	// Hold says that a child is not to be put right now; nil holds none.
	Defer func(*Step) bool
	// Now is the clock that repair times are measured with, Since when the event
	// arrived that led to this plan.
	Now   func() time.Time
	Since time.Time
}

// Change is what was done with one child.
type Change struct {
	Key    Key
	Action Action
	Drift  drift.Finding
	// Deleted: a repair of an object that was gone.
	Deleted bool
	// Reclaimed: a repair of fields that had the right values, which somebody else had
	// changed back.
	Reclaimed bool
	// Foreign are the fields that were removed from the pod template.
	Foreign *drift.Fields
	// Intent that was applied, and Found, the object as it was before, or nil.
	Intent *unstructured.Unstructured
	Found  metav1.Object
	// DoneAt is when the API server had answered, Took the time from the event to
	// there.
	DoneAt time.Time
	Took   time.Duration
}

// Drifted says that the change put right what somebody else had done.
func (c *Change) Drifted() bool {
	return c.Deleted || c.Action == RemoveForeign || c.Action == Correct && !c.Reclaimed
}

// Report is what came of a plan.
type Report struct {
	// Changes that were written, in the order of the plan.
	Changes []Change
	// Inventory of the children that are there now.
	Inventory []v1alpha1.InventoryEntry
	// Open is what differs and was left so, in order.
	Remaining []RemainingDrift
	// Deferred are children that differ and that Hold left so.
	Deferred []Key
	// Unobserved are children that could not be looked at, were not come to, or could not be
	// repaired: nothing is known of how they are now.
	Unobserved []Key
	// Failures of single children, in order.
	Failures []*failure.Failure
	// Retained are the children that were applied but for fields that cannot change.
	Retained []*failure.Failure
}

// PrimaryFailure is the failure that a status shows: the first that needs a person, else the first.
func (r *Report) PrimaryFailure() *failure.Failure {
	var first *failure.Failure
	for _, f := range slices.Concat(r.Failures, r.Retained) {
		if f.Class != v1alpha1.ClassTransient {
			return f
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// Apply carries a plan out. It never returns early because one child failed,
// except when the member does not answer, so that each further child would cost a
// time-out, or asks to be left alone for a while.
func (a *Applier) Apply(ctx context.Context, plan Plan) Report {
	var report Report
	// Two caches that want the same child come one after the other: a new one that comes
	// later is told, and gets none.
	release, failed := a.Writes.claim(ctx, a.Namespace, plan.Steps)
	if failed != nil {
		report.fail(failed)
		report.notSeen(plan.Steps)
		report.keepInventory(a.Owner.Inventory)
		return report
	}
	defer release()
	if !plan.begun(a.Owner) {
		a.begin(ctx, &plan, &report)
	} else if stop := a.confirm(ctx, &plan, &report); stop {
		report.notSeen(plan.Steps)
		report.keepInventory(a.Owner.Inventory)
		return report
	} else if stop := a.inTurn(ctx, plan.Steps, &report); stop {
		report.keepInventory(a.Owner.Inventory)
		return report
	}
	if len(report.Failures) > 0 {
		// Prune only after every apply succeeded: until then the old children may be
		// the only ones that work.
		report.keepInventory(a.Owner.Inventory)
		return report
	}
	for _, target := range plan.Prune {
		if stop := a.prune(ctx, target, &report); stop {
			report.keepInventory(a.Owner.Inventory)
			break
		}
	}
	return report
}

// inTurn carries steps out one after the other.
func (a *Applier) inTurn(ctx context.Context, steps []Step, report *Report) (stop bool) {
	for i := range steps {
		if a.step(ctx, &steps[i], report) {
			report.notSeen(steps[i+1:])
			return true
		}
	}
	return false
}

// begin carries out the first steps of a cache: the StatefulSet's, the most costly of
// them, is its own rehearsal. The others follow all at once: none depends on another,
// and to a member far away each would cost a round trip.
func (a *Applier) begin(ctx context.Context, plan *Plan, report *Report) {
	first := plan.first()
	if a.rehearse(ctx, plan, first, report); len(report.Failures) > 0 {
		return
	}
	parts := make([]Report, len(plan.Steps))
	if first >= 0 {
		a.step(ctx, &plan.Steps[first], &parts[first])
	}
	if first < 0 || len(parts[first].Failures) == 0 {
		var all sync.WaitGroup
		for i := range plan.Steps {
			if i != first {
				all.Go(func() { a.step(ctx, &plan.Steps[i], &parts[i]) })
			}
		}
		all.Wait()
	}
	for i := range parts {
		report.Changes = append(report.Changes, parts[i].Changes...)
		report.Inventory = append(report.Inventory, parts[i].Inventory...)
		report.Remaining = append(report.Remaining, parts[i].Remaining...)
		report.Deferred = append(report.Deferred, parts[i].Deferred...)
		report.Unobserved = append(report.Unobserved, parts[i].Unobserved...)
		report.Failures = append(report.Failures, parts[i].Failures...)
		report.Retained = append(report.Retained, parts[i].Retained...)
	}
}

func (a *Applier) step(ctx context.Context, step *Step, report *Report) (stop bool) {
	key := step.Key()
	if step.repairs() && a.Defer != nil && a.Defer(step) {
		step.Action, step.Deferred = ReportOnly, true
	}
	if step.stranger() && step.Action != RemoveForeign && !step.Deferred {
		report.Remaining = append(report.Remaining, RemainingDrift{Key: key, Fields: step.Foreign, Foreign: true, Found: step.Live})
	}
	switch step.Action {
	case Wait:
		report.Unobserved = append(report.Unobserved, key)
		return report.fail(step.Failure)
	case Refuse:
		return report.fail(step.Failure)
	case None:
		report.keep(step, step.Live)
		if change, since, ok := a.Writes.Tried(key, a.Namespace); ok {
			// It went through after all.
			change.DoneAt = a.Now()
			change.Took = change.DoneAt.Sub(since)
			report.Changes = append(report.Changes, change)
		}
		return false
	case ReportOnly:
		a.leave(step, report)
		return false
	case Recreate:
		return a.recreate(ctx, step, report)
	case RemoveForeign:
		return a.strip(ctx, step, report)
	}
	change := Change{Key: key, Action: step.Action, Drift: step.Drift, Deleted: step.Deleted, Intent: step.Intent, Found: step.Live}
	applied, err := a.put(ctx, step)
	change.DoneAt = a.Now()
	// A repair does not wait for this.
	change.Reclaimed = step.Action == Correct && step.reclaims()
	if err != nil {
		if change.Drifted() {
			if failed := foreign(err, step); failed.Refusal() {
				return a.refused(step, failed, report)
			}
			a.Writes.Try(key, a.Namespace, change, a.Since)
		}
		if change.Drifted() || step.Action == Update {
			// Neither right nor left as it is.
			report.Unobserved = append(report.Unobserved, key)
		}
		return report.fail(foreign(err, step))
	}
	a.Writes.Learn(step.Desired, applied)
	a.Writes.Put(key, a.Namespace, applied)
	if failed, stop := a.keptAltered(step, applied, report); failed {
		return stop
	}
	report.keep(step, applied)
	since := a.Since
	if _, first, ok := a.Writes.Tried(key, a.Namespace); ok {
		since = first
	}
	change.Took = change.DoneAt.Sub(since)
	report.Changes = append(report.Changes, change)
	return false
}

func (a *Applier) lookUp(ctx context.Context, key Key) (client.Object, error) {
	object, err := a.newObject(key)
	if err != nil {
		return nil, err
	}
	err = a.Reader.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// newObject is an empty child. It has its kind's own type: the API server then
// answers in protobuf, which costs both sides less than JSON.
func (a *Applier) newObject(key Key) (client.Object, error) {
	made, err := a.Client.Scheme().New(key.Kind)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object of an API", key.Kind)
	}
	object.GetObjectKind().SetGroupVersionKind(key.Kind)
	object.SetNamespace(a.Namespace)
	object.SetName(key.Name)
	return object, nil
}

// write applies one intent. Whoever changed a field of ours loses it again, so
// updates, repairs and takeovers force; a first apply does not, and is refused where
// anything stands already, because that is not ours.
func (a *Applier) write(ctx context.Context, step *Step, extra ...client.PatchOption) (client.Object, error) {
	applied, err := a.send(ctx, step, extra)
	if err == nil || !a.CreateNamespace || !namespaceMissing(err) {
		return applied, err
	}
	// Created, not applied: that would need the right to patch every namespace.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	if err := a.Client.Create(ctx, namespace, client.FieldOwner(v1alpha1.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, failure.Of(err, "create", "Namespace/"+a.Namespace)
	}
	return a.send(ctx, step, extra)
}

// absentVersion makes an apply create or fail: an API server passes over the version
// where there is no object yet, and no object has the first version of all. Without it
// an apply would join what another of our kind, with the same field manager, created a
// moment ago, and take it over without a conflict.
const absentVersion = "1"

// refusesVersion says that the member cannot be asked so: of Services, API servers before
// Kubernetes 1.24 may answer 500 with these words. There a first apply is guarded by the
// look before it only.
func refusesVersion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resourceVersion should not be set on objects to be created")
}

func (a *Applier) send(ctx context.Context, step *Step, extra []client.PatchOption) (client.Object, error) {
	applied, err := a.sendOnce(ctx, step, extra)
	if step.Action == Create && !step.unguarded && refusesVersion(err) {
		step.unguarded = true
		applied, err = a.sendOnce(ctx, step, extra)
	}
	return applied, err
}

func (a *Applier) sendOnce(ctx context.Context, step *Step, extra []client.PatchOption) (client.Object, error) {
	intent := step.Intent.DeepCopy()
	options := append([]client.PatchOption{client.FieldOwner(v1alpha1.FieldManager)}, extra...)
	switch {
	case step.Action == Create && step.unguarded:
	case step.Action == Create:
		intent.SetResourceVersion(absentVersion)
	default:
		// Force is for the object that was looked at: a namesake that came since, of
		// whoever, is refused by its UID.
		intent.SetUID(step.Live.GetUID())
		if step.Action == TakeOver {
			// It must still be the object that was found fit.
			intent.SetResourceVersion(step.Live.GetResourceVersion())
		}
		options = append(options, client.ForceOwnership)
	}
	body, err := intent.MarshalJSON()
	if err != nil {
		return nil, err
	}
	applied, err := a.newObject(step.Key())
	if err != nil {
		return nil, err
	}
	err = a.Client.Patch(ctx, applied, client.RawPatch(types.ApplyPatchType, body), options...)
	return applied, err
}

func namespaceMissing(err error) bool {
	f := failure.Of(err, "", "")
	return f.Reason == v1alpha1.ReasonNamespaceMissing
}

// foreign names the object in a conflict that a first apply met.
func foreign(err error, step *Step) *failure.Failure {
	f := failure.Of(err, "apply", step.Key().String())
	if apierrors.IsConflict(err) && f.Class == v1alpha1.ClassTransient && step.Action == Create {
		// Perhaps by us: an answer may have been lost.
		f.Message = fmt.Sprintf("%s came into being in the member at the same moment; it is looked at again", step.Key())
	}
	if f.Reason == v1alpha1.ReasonObjectOfAnother && step.Action == Create {
		f.Message = fmt.Sprintf("metadata.name: %q: %s came into being in the member at the same moment, made by somebody else", step.Intent.GetName(), step.Key())
	}
	return f
}

func (a *Applier) prune(ctx context.Context, target Target, report *Report) (stop bool) {
	if target.Deleting {
		return false
	}
	if err := a.remove(ctx, target); err != nil {
		report.Inventory = append(report.Inventory, target.entry())
		return report.fail(failure.Of(err, "prune", target.Key.String()))
	}
	report.Changes = append(report.Changes, Change{Key: target.Key, Action: Prune, DoneAt: a.Now()})
	return false
}

// keep notes a child that is there, and what of it is held.
func (r *Report) keep(step *Step, object metav1.Object) {
	e := entry(step.Key(), object)
	e.Recreating = step.Recreating && !adopted(object)
	r.Inventory = append(r.Inventory, e)
	if step.Retained != nil {
		r.Retained = append(r.Retained, step.Retained)
	}
}

// fail notes a failure and says whether going on makes sense.
func (r *Report) fail(f *failure.Failure) (stop bool) {
	r.Failures = append(r.Failures, f)
	return stops(f)
}

// stops says that no further child is worth a request: the member does not answer,
// or asked not to be asked for a while.
func stops(f *failure.Failure) bool {
	return f.Class == v1alpha1.ClassUnreachable || f.Class == v1alpha1.ClassTransient && f.RetryAfter > 0
}

// notSeen notes children that nothing was found out about.
func (r *Report) notSeen(steps []Step) {
	for i := range steps {
		r.Unobserved = append(r.Unobserved, steps[i].Key())
	}
}

// keepInventory adds what was known before and not seen this time: a child that
// could not be looked at is not gone.
func (r *Report) keepInventory(before []v1alpha1.InventoryEntry) {
	for _, e := range before {
		found := false
		for _, n := range r.Inventory {
			found = found || (n.Group == e.Group && n.Kind == e.Kind && n.Name == e.Name)
		}
		if !found {
			r.Inventory = append(r.Inventory, e)
		}
	}
}

func entry(key Key, object metav1.Object) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{Group: key.Kind.Group, Kind: key.Kind.Kind, Name: key.Name, UID: object.GetUID()}
}

func (t Target) entry() v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{Group: t.Key.Kind.Group, Kind: t.Key.Kind.Kind, Name: t.Key.Name, UID: t.UID}
}

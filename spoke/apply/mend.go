package apply

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// put makes a child as its intent asks: a repair goes the short way where that is
// enough, everything else applies the whole intent.
func (a *Applier) put(ctx context.Context, step *Step) (client.Object, error) {
	applied, err := a.putBeside(ctx, step)
	if apierrors.IsInvalid(err) && (step.Verb == Repair || step.Verb == Update) {
		if made, failed := a.makeRoom(ctx, step); made != nil || failed != nil {
			return made, failed
		}
	}
	return applied, err
}

// makeRoom puts what is ours in the place of what others hold right beside it, in the
// version that was looked at. It gives nil where there is nothing.
func (a *Applier) makeRoom(ctx context.Context, step *Step) (client.Object, error) {
	crowding := drift.Crowding(step.Wanted, drift.Missing(step.Wanted, step.Live), step.Live)
	if crowding.Empty() {
		return nil, nil
	}
	spec, err := drift.SpecWithout(a.Owner.Typer, step.Intent, step.Live, crowding)
	if err != nil {
		return nil, err
	}
	made, err := a.patch(ctx, step, []operation{{"replace", "/spec", spec}})
	if err != nil || step.Verb == Repair && a.holds(step, made) {
		return made, err
	}
	// The rest, such as the mark of a new wish, is outside of the spec.
	rest := *step
	rest.Live = made
	return a.write(ctx, &rest)
}

// putBeside leaves alone what others added.
func (a *Applier) putBeside(ctx context.Context, step *Step) (client.Object, error) {
	if step.Verb == Repair || step.Verb == Update {
		restored, err := a.restore(ctx, step)
		if err != nil {
			return nil, err
		}
		if restored != nil {
			if step.Verb == Repair && a.holds(step, restored) {
				return restored, nil
			}
			// The step itself still says what was found.
			rest := *step
			rest.Live, step = restored, &rest
		}
	}
	switch {
	case step.Verb == Repair:
		if mended, err := a.mend(ctx, step); mended != nil || err != nil {
			return mended, err
		}
	case step.Verb == Update && drift.Patched(step.Live):
		if err := a.merge(ctx, step); err != nil {
			return nil, err
		}
	}
	return a.write(ctx, step)
}

// restore puts items of ours in the place of those that somebody made of them, in the
// version that was looked at. It gives nil where there are none.
func (a *Applier) restore(ctx context.Context, step *Step) (client.Object, error) {
	moved := drift.MovedItems(step.Intent, step.Live, drift.Missing(step.Wanted, step.Live))
	if len(moved) == 0 {
		return nil, nil
	}
	var operations []operation
	for _, m := range moved {
		operations = append(operations, operation{"replace", m.Pointer, m.Item})
	}
	return a.patch(ctx, step, operations)
}

// operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch changes a child in the version that was looked at.
func (a *Applier) patch(ctx context.Context, step *Step, operations []operation) (client.Object, error) {
	body, err := json.Marshal(append([]operation{{"replace", "/metadata/resourceVersion", step.Live.GetResourceVersion()}}, operations...))
	if err != nil {
		return nil, err
	}
	patched, err := a.newObject(step.Key())
	if err != nil {
		return nil, err
	}
	if err := a.Client.Patch(ctx, patched, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return nil, err
	}
	return patched, nil
}

// holds says that we own all that is wanted of an object.
func (a *Applier) holds(step *Step, object client.Object) bool {
	missing := drift.Missing(step.Wanted, object)
	if known := a.Recent.Known(string(object.GetUID()), step.Hash); known != nil {
		missing = missing.Difference(known)
	}
	return missing.Empty()
}

// mend patches single fields back. It gives nil where the whole intent has to be
// applied, also because we turn out to have lost more than the cache knew.
func (a *Applier) mend(ctx context.Context, step *Step) (client.Object, error) {
	body := drift.Patch(step.Intent, step.Live.GetUID(), step.Finding.Missing)
	if body == nil {
		return nil, nil
	}
	mended, err := a.newObject(step.Key())
	if err != nil {
		return nil, err
	}
	err = a.Client.Patch(ctx, mended, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return nil, err
	}
	if !a.holds(step, mended) {
		return nil, nil
	}
	return mended, nil
}

// merge moves the fields that were patched back into the entry of our applies, so
// that the next apply lets go of those that the intent lacks.
func (a *Applier) merge(ctx context.Context, step *Step) error {
	live, ok := step.Live.(runtime.Object)
	if !ok {
		return nil
	}
	// It changes the entries of what it is given.
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live.DeepCopyObject(), sets.New(v1alpha1.FieldManager), v1alpha1.FieldManager)
	if err != nil || patch == nil {
		return err
	}
	object, err := a.newObject(step.Key())
	if err != nil {
		return err
	}
	return a.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch))
}

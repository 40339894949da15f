package apply

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if apierrors.IsInvalid(err) && (step.Action == Correct || step.Action == Update) && foreign(err, step).Reason == v1alpha1.ReasonRejected {
		made, failed := a.makeRoom(ctx, step, err)
		if made != nil || failed != nil && !apierrors.IsInvalid(failed) {
			return made, failed
		}
	}
	return applied, err
}

// makeRoom puts what is ours in the place of what others hold right beside it, in the
// version that was looked at. It gives nil where there is nothing.
func (a *Applier) makeRoom(ctx context.Context, step *Step, refusal error) (client.Object, error) {
	var fields []string
	if status := apierrors.APIStatus(nil); errors.As(refusal, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	// What is yielded is somebody's to keep.
	wanted := step.Wanted.Union(step.wish.Wanted)
	edits := a.Owner.DriftPolicy.MakeRoom(step.Intent, step.Live, wanted, a.missing(step, step.Live), fields)
	if len(edits) == 0 {
		return nil, nil
	}
	made, err := a.patch(ctx, step, edits)
	if err != nil || step.Action == Correct && a.holds(step, made) {
		return made, err
	}
	rest := *step
	rest.Live = made
	return a.write(ctx, &rest)
}

// putBeside leaves alone what others added.
func (a *Applier) putBeside(ctx context.Context, step *Step) (client.Object, error) {
	if step.Action == Correct || step.Action == Update {
		restored, err := a.restore(ctx, step)
		if err != nil {
			return nil, err
		}
		if restored != nil {
			if step.Action == Correct && a.holds(step, restored) {
				return restored, nil
			}
			// The step itself still says what was found.
			rest := *step
			rest.Live, step = restored, &rest
		}
	}
	switch {
	case step.Action == Correct:
		if mended, err := a.mend(ctx, step); mended != nil || err != nil {
			return mended, err
		}
	case step.Action == Update && drift.Patched(step.Live):
		if err := a.merge(ctx, step); err != nil {
			return nil, err
		}
	}
	return a.write(ctx, step)
}

// restore puts items of ours in the place of those that somebody made of them, in the
// version that was looked at. It gives nil where there are none.
func (a *Applier) restore(ctx context.Context, step *Step) (client.Object, error) {
	var edits []drift.Edit
	for _, m := range drift.MovedItems(step.Intent, step.Live, a.missing(step, step.Live)) {
		edits = append(edits, m.Edits...)
	}
	if len(edits) == 0 {
		return nil, nil
	}
	return a.patch(ctx, step, edits)
}

// operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch changes a child in the version that was looked at.
func (a *Applier) patch(ctx context.Context, step *Step, edits []drift.Edit) (client.Object, error) {
	operations := []operation{{"replace", "/metadata/resourceVersion", step.Live.GetResourceVersion()}}
	for _, e := range edits {
		op := "add"
		if e.Value == nil {
			op = "remove"
		}
		operations = append(operations, operation{op, e.Pointer, e.Value})
	}
	body, err := json.Marshal(operations)
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
	return a.missing(step, object).Empty()
}

// missing are the fields that are wanted of an object and not ours, but for those that the
// member never gave us.
func (a *Applier) missing(step *Step, object metav1.Object) *drift.Fields {
	missing := drift.Missing(step.Wanted, object)
	if known := a.Writes.Known(string(object.GetUID()), step.Hash); known != nil {
		missing = missing.Difference(known)
	}
	return missing
}

// mend patches single fields back. It gives nil where the whole intent has to be
// applied, also because we turn out to have lost more than the cache knew.
func (a *Applier) mend(ctx context.Context, step *Step) (client.Object, error) {
	body := drift.Patch(step.Intent, step.Live.GetUID(), step.Drift.Missing)
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

package apply

import (
	"context"

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
	missing := drift.Missing(step.Wanted, mended)
	if known := a.Recent.Known(string(mended.GetUID()), step.Hash); known != nil {
		missing = missing.Difference(known)
	}
	if !missing.Empty() {
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

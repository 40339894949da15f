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

// A correction or an update tries these strategies in order. A strategy ends the chain if
// the hub owns all desired fields after it.
//
//  1. Rekeyed list items are replaced in the live version, so that the renamed item does not
//     stay next to the desired one.
//  2. A correction of few single fields is a merge patch of these fields. An update after
//     such a patch first merges the managed fields, so that the next apply removes the
//     fields that the intent lacks.
//  3. The whole intent is applied.
//  4. If the API server rejects a value because of a mutually exclusive sibling field of
//     another field manager, both are replaced in one write.

// correct writes the intent of a step over a live object of this owner. It tries the
// strategies 1 to 3.
func (a *Applier) correct(ctx context.Context, step *Step) (client.Object, error) {
	if edits := step.rekeyedEdits(); len(edits) > 0 {
		replaced, err := a.patchLive(ctx, step, edits)
		if err != nil || step.Action == Correct && step.owned(replaced) {
			return replaced, err
		}
		step = step.after(replaced)
	}
	switch {
	case step.Action == Update && drift.HasPatchedFields(step.Live):
		if err := a.mergeManagedFields(ctx, step); err != nil {
			return nil, err
		}
	case step.Action == Correct:
		if body := drift.Patch(step.Intent, step.Live.GetUID(), step.Drift.Fields); body != nil {
			patched, err := a.patch(ctx, step.Key(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
			if err != nil || step.owned(patched) {
				return patched, err
			}
			// More fields drifted than the cache shows.
		}
	}
	applied, _, err := a.applyIntent(ctx, step)
	return applied, err
}

// replaceSiblings is strategy 4, for a write that the API server rejected. It returns the
// rejection where no sibling explains it.
func (a *Applier) replaceSiblings(ctx context.Context, owner *Owner, step *Step, rejection error) (client.Object, error) {
	edits := step.siblingEdits(&owner.DriftPolicy, rejection)
	if len(edits) == 0 {
		return nil, rejection
	}
	replaced, err := a.patchLive(ctx, step, edits)
	switch {
	case apierrors.IsInvalid(err):
		return nil, rejection
	case err != nil || step.Action == Correct && step.owned(replaced):
		return replaced, err
	}
	applied, _, err := a.applyIntent(ctx, step.after(replaced))
	return applied, err
}

// rejected reports whether the API server rejected a value of a step's intent.
func rejected(err error, step *Step) bool {
	return apierrors.IsInvalid(err) && applyFailure(err, step).Reason == v1alpha1.ReasonRejected
}

// after returns the step for the live object after an earlier write.
func (s *Step) after(live client.Object) *Step {
	next := *s
	next.Live = live
	return &next
}

// rekeyedEdits returns the edits that replace list items that another client rekeyed.
func (s *Step) rekeyedEdits() []drift.Edit {
	var edits []drift.Edit
	for _, item := range drift.RekeyedItems(s.Intent, s.Live, s.missing(s.Live)) {
		edits = append(edits, item.Edits...)
	}
	return edits
}

// siblingEdits returns the edits that replace the mutually exclusive siblings of the fields
// that the API server rejected.
func (s *Step) siblingEdits(policy *drift.Policy, rejection error) []drift.Edit {
	var rejected []string
	if status := apierrors.APIStatus(nil); errors.As(rejection, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			rejected = append(rejected, cause.Field)
		}
	}
	// Fields that an ignore rule covers are not replaced either.
	fields := s.Fields
	if s.original.Fields != nil {
		fields = fields.Union(s.original.Fields)
	}
	return policy.SiblingEdits(s.Intent, s.Live, fields, s.missing(s.Live), rejected)
}

// missing returns the desired fields that the hub does not own in an object, except for
// those that the member never records.
func (s *Step) missing(object metav1.Object) *drift.Fields {
	missing := drift.UnownedFields(s.Fields, object)
	if unowned := s.learned.unowned(s.Hash); unowned != nil {
		missing = missing.Difference(unowned)
	}
	return missing
}

// owned reports whether the hub owns all desired fields of an object.
func (s *Step) owned(object metav1.Object) bool { return s.missing(object).Empty() }

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func jsonPatch(operations ...operation) (client.Patch, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.JSONPatchType, body), nil
}

// patchLive edits a child in the resource version of its live object.
func (a *Applier) patchLive(ctx context.Context, step *Step, edits []drift.Edit) (client.Object, error) {
	operations := []operation{{"replace", "/metadata/resourceVersion", step.Live.GetResourceVersion()}}
	for _, e := range edits {
		op := "add"
		if e.Value == nil {
			op = "remove"
		}
		operations = append(operations, operation{op, e.Pointer, e.Value})
	}
	patch, err := jsonPatch(operations...)
	if err != nil {
		return nil, err
	}
	return a.patch(ctx, step.Key(), patch, client.FieldOwner(v1alpha1.FieldManager))
}

// mergeManagedFields moves the fields that patches wrote into the managedFields entry of the
// applies, so that the next apply removes those that the intent lacks.
func (a *Applier) mergeManagedFields(ctx context.Context, step *Step) error {
	live, ok := step.Live.(runtime.Object)
	if !ok {
		return nil
	}
	// The upgrade changes the entries of its argument, and the live object is shared.
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live.DeepCopyObject(), sets.New(v1alpha1.FieldManager), v1alpha1.FieldManager)
	if err != nil || patch == nil {
		return err
	}
	_, err = a.patch(ctx, step.Key(), client.RawPatch(types.JSONPatchType, patch))
	return err
}

package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/field"
)

// Notes of an undo.
const (
	noteReplaced  = "the object was deleted or recreated, nothing to undo"
	noteRestored  = "the earlier value is restored"
	noteCorrected = "the value was already corrected"
	noteRecreated = "the object was already recreated"
)

// object is an object that a fault changes.
type object struct {
	// Before is the object before the fault.
	Before *unstructured.Unstructured `json:"before"`
	// Field is the path of the field that the fault sets, and Value the new value.
	Field string          `json:"field,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// String returns KIND/NAME.
func (o *object) String() string { return o.Before.GetKind() + "/" + o.Before.GetName() }

func (o *object) value() (any, error) {
	var value any
	err := utiljson.Unmarshal(o.Value, &value)
	return value, err
}

// read returns the live object.
func (o *object) read(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.Before.GroupVersionKind())
	return live, c.Get(ctx, client.ObjectKeyFromObject(o.Before), live)
}

// setField sets the field under the name of a field manager, and reports whether that
// changed the object.
func (o *object) setField(ctx context.Context, c client.Client, manager string) (changed bool, err error) {
	value, err := o.value()
	if err != nil {
		return false, err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := o.read(ctx, c)
		if err != nil {
			return err
		}
		target, err := field.Find(live.Object, o.Field)
		if err != nil {
			return err
		}
		if current, _ := target.Value(); reflect.DeepEqual(current, value) {
			return nil
		}
		target.Set(value)
		if err := c.Update(ctx, live, client.FieldOwner(manager)); err != nil {
			return err
		}
		changed = true
		return nil
	})
	return changed, err
}

// restoreField undoes setField unless another client has changed the field since. It
// restores the earlier value and the earlier owners of fields.
func (o *object) restoreField(ctx context.Context, c client.Client, manager string) (note string, err error) {
	value, err := o.value()
	if err != nil {
		return "", err
	}
	original, err := field.Find(o.Before.Object, o.Field)
	if err != nil {
		return "", err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := o.read(ctx, c)
		if apierrors.IsNotFound(err) || err == nil && live.GetUID() != o.Before.GetUID() {
			note = noteReplaced
			return nil
		}
		if err != nil {
			return err
		}
		target, err := field.Find(live.Object, o.Field)
		if err != nil {
			note = "another client has changed the object, nothing to undo"
			return nil
		}
		if current, _ := target.Value(); !reflect.DeepEqual(current, value) {
			note = noteCorrected
			return nil
		}
		note, err = o.restoreValue(ctx, c, live, target, original, manager)
		return err
	})
	return note, err
}

// restoreValue writes the earlier value to the live object. It restores the owners only if
// the desired state of the hub is still the same: with the hub as owner of an outdated
// value, the hub would not detect that the value is outdated.
func (o *object) restoreValue(ctx context.Context, c client.Client, live *unstructured.Unstructured, target, original field.Field, manager string) (note string, err error) {
	unchanged := o.unchangedExceptField(live)
	if old, exists := original.Value(); exists {
		target.Set(old)
	} else {
		target.Remove()
	}
	if err := c.Update(ctx, live, client.FieldOwner(manager)); err != nil {
		return "", err
	}
	if !unchanged {
		return noteRestored + "; the hub corrects it if its desired value has changed", nil
	}
	return noteRestored, o.restoreOwners(ctx, c, live, manager)
}

// unchangedExceptField reports whether the live object differs from the earlier one in the
// field only.
func (o *object) unchangedExceptField(live *unstructured.Unstructured) bool {
	normalized := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", name)
		}
		delete(u.Object, "status")
		if target, err := field.Find(u.Object, o.Field); err == nil {
			target.Remove()
		}
		return u.Object
	}
	return reflect.DeepEqual(normalized(o.Before), normalized(live))
}

// recreate undoes a deletion unless another client has recreated the object.
func (o *object) recreate(ctx context.Context, c client.Client, manager string) (note string, err error) {
	_, err = o.read(ctx, c)
	if err == nil {
		return noteRecreated, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	created := o.Before.DeepCopy()
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(created.Object, "metadata", name)
	}
	delete(created.Object, "status")
	if created.GetKind() == "Service" {
		// Another Service may have this address; the API server assigns a new one.
		unstructured.RemoveNestedField(created.Object, "spec", "clusterIPs")
		if ip, _, _ := unstructured.NestedString(created.Object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(created.Object, "spec", "clusterIP")
		}
	}
	if err := c.Create(ctx, created, client.FieldOwner(manager)); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return noteRecreated, nil
		}
		return "", err
	}
	return "the object is recreated", o.restoreOwners(ctx, c, created, manager)
}

// restoreOwners restores the earlier owners of the fields of the live object. Without it,
// manager would own the restored fields, which the hub reports as drift. An API server
// accepts managedFields as a client writes them.
func (o *object) restoreOwners(ctx context.Context, c client.Client, live *unstructured.Unstructured, manager string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
			// Another client, usually the hub, has taken over the fields.
			return nil
		}
		live.SetManagedFields(o.mergedOwners(live, manager))
		err := c.Update(ctx, live, client.FieldOwner(manager))
		if apierrors.IsConflict(err) {
			var readErr error
			if live, readErr = o.read(ctx, c); readErr != nil {
				return client.IgnoreNotFound(readErr)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore the field owners of %s: %w", o, err)
	}
	return nil
}

// mergedOwners returns the earlier owners, plus those that other clients and status updates
// have added since. It omits manager.
func (o *object) mergedOwners(live *unstructured.Unstructured, manager string) []metav1.ManagedFieldsEntry {
	var owners []metav1.ManagedFieldsEntry
	known := map[string]bool{manager + string(metav1.ManagedFieldsOperationUpdate): true}
	for _, e := range o.Before.GetManagedFields() {
		if e.Subresource == "" {
			owners = append(owners, e)
			known[e.Manager+string(e.Operation)] = true
		}
	}
	for _, e := range live.GetManagedFields() {
		if e.Subresource != "" || !known[e.Manager+string(e.Operation)] {
			owners = append(owners, e)
		}
	}
	return owners
}

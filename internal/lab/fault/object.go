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

// object is one that a fault changes: as it was before, and what one of its fields
// is set to.
type object struct {
	Before *unstructured.Unstructured `json:"before"`
	Field  string                     `json:"field,omitempty"`
	Set    json.RawMessage            `json:"set,omitempty"`
}

// String is KIND/NAME.
func (o *object) String() string { return o.Before.GetKind() + "/" + o.Before.GetName() }

func (o *object) set() (any, error) {
	var value any
	err := utiljson.Unmarshal(o.Set, &value)
	return value, err
}

// read gets the object as it is now.
func (o *object) read(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(o.Before.GroupVersionKind())
	return now, c.Get(ctx, client.ObjectKeyFromObject(o.Before), now)
}

// change sets the field in the name of a manager, and says whether it had to.
func (o *object) change(ctx context.Context, c client.Client, manager string) (changed bool, err error) {
	value, err := o.set()
	if err != nil {
		return false, err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := o.read(ctx, c)
		if err != nil {
			return err
		}
		at, err := field.Find(now.Object, o.Field)
		if err != nil {
			return err
		}
		if is, _ := at.Value(); reflect.DeepEqual(is, value) {
			return nil
		}
		at.Set(value)
		if err := c.Update(ctx, now, client.FieldOwner(manager)); err != nil {
			return err
		}
		changed = true
		return nil
	})
	return changed, err
}

// changeBack undoes change where nobody else did: the old value, and the owners of
// fields as they were.
func (o *object) changeBack(ctx context.Context, c client.Client, manager string) (note string, err error) {
	value, err := o.set()
	if err != nil {
		return "", err
	}
	was, err := field.Find(o.Before.Object, o.Field)
	if err != nil {
		return "", err
	}
	old, had := was.Value()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := o.read(ctx, c)
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != o.Before.GetUID() {
			note = "the object is gone or was replaced"
			return nil
		}
		if err != nil {
			return err
		}
		at, err := field.Find(now.Object, o.Field)
		if err != nil {
			note = "somebody else has changed the object since"
			return nil
		}
		if is, _ := at.Value(); !reflect.DeepEqual(is, value) {
			note = "it was put right already"
			return nil
		}
		// Another wish of the hub's may have come in between: to say that the old value
		// is what it wants would hide it from the hub for good.
		same := o.sameBut(now)
		if had {
			at.Set(old)
		} else {
			at.Remove()
		}
		if err := c.Update(ctx, now, client.FieldOwner(manager)); err != nil {
			return err
		}
		if !same {
			note = "the old value is back; the hub puts right what it wants otherwise by now"
			return nil
		}
		note = "the old value is back"
		return o.restoreOwners(ctx, c, now, manager)
	})
	return note, err
}

// sameBut says whether nothing but the field has changed since.
func (o *object) sameBut(now *unstructured.Unstructured) bool {
	rest := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		for _, of := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", of)
		}
		delete(u.Object, "status")
		if at, err := field.Find(u.Object, o.Field); err == nil {
			at.Remove()
		}
		return u.Object
	}
	return reflect.DeepEqual(rest(o.Before), rest(now))
}

// createAgain undoes a deletion where nobody else did.
func (o *object) createAgain(ctx context.Context, c client.Client, manager string) (string, error) {
	_, err := o.read(ctx, c)
	if err == nil {
		return "it was made anew already", nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	again := o.Before.DeepCopy()
	for _, of := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(again.Object, "metadata", of)
	}
	delete(again.Object, "status")
	if again.GetKind() == "Service" {
		// The address may be somebody else's by now; the API server gives another.
		unstructured.RemoveNestedField(again.Object, "spec", "clusterIPs")
		if ip, _, _ := unstructured.NestedString(again.Object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(again.Object, "spec", "clusterIP")
		}
	}
	if err := c.Create(ctx, again, client.FieldOwner(manager)); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return "it was made anew already", nil
		}
		return "", err
	}
	return "it is there again", o.restoreOwners(ctx, c, again, manager)
}

// restoreOwners gives the fields of now back to who owned them before: writing the
// old value alone leaves it to the writer, which the hub would call drift. An API
// server takes managedFields as they are written.
func (o *object) restoreOwners(ctx context.Context, c client.Client, now *unstructured.Unstructured, manager string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !slices.ContainsFunc(now.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
			// Somebody, most likely the hub, has taken its fields back.
			return nil
		}
		now.SetManagedFields(o.owners(now, manager))
		err := c.Update(ctx, now, client.FieldOwner(manager))
		if apierrors.IsConflict(err) {
			var read error
			if now, read = o.read(ctx, c); read != nil {
				return client.IgnoreNotFound(read)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("give the fields of %s back to their owners: %w", o, err)
	}
	return nil
}

// owners before, with what others and controllers of the status have added since.
func (o *object) owners(now *unstructured.Unstructured, without string) []metav1.ManagedFieldsEntry {
	var owners []metav1.ManagedFieldsEntry
	known := map[string]bool{without + string(metav1.ManagedFieldsOperationUpdate): true}
	for _, e := range o.Before.GetManagedFields() {
		if e.Subresource == "" {
			owners = append(owners, e)
			known[e.Manager+string(e.Operation)] = true
		}
	}
	for _, e := range now.GetManagedFields() {
		if e.Subresource != "" || !known[e.Manager+string(e.Operation)] {
			owners = append(owners, e)
		}
	}
	return owners
}

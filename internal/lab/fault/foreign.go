package fault

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreign adds a field to the pod template with server-side apply, under a field manager of
// its own. The undo applies an empty configuration under that name, which removes exactly
// that field.
type foreign struct{}

// Fields that a foreign fault can add.
const (
	addEnv        = "env"
	addAnnotation = "annotation"
	addSidecar    = "sidecar"
)

func (foreign) prepare(ctx context.Context, i *Injector, f *Fault) error {
	r := &f.Request
	if r.Add == "" {
		r.Add = addEnv
	}
	if r.Manager == "" {
		// Each fault needs its own field manager: an apply removes the fields that the same
		// manager has applied before.
		r.Manager = "reconcile-lab-" + f.ID
	}
	if err := i.findChild(ctx, f); err != nil {
		return err
	}
	added, err := foreignField(f.Object.Before, r.Add)
	if err != nil {
		return err
	}
	if f.Object.Value, err = added.MarshalJSON(); err != nil {
		return err
	}
	f.Description = fmt.Sprintf("%s %s: %s added to the pod template, by %s", r.Member, f.Object, map[string]string{
		addEnv: "env INJECTED", addAnnotation: "annotation example.com/injected", addSidecar: "container injected",
	}[r.Add], r.Manager)
	return nil
}

// foreignField returns the apply configuration that adds one field to the object.
func foreignField(target *unstructured.Unstructured, add string) (*unstructured.Unstructured, error) {
	containers, _, err := unstructured.NestedSlice(target.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return nil, badInput("%s/%s has no pod template; use --kind StatefulSet", target.GetKind(), target.GetName())
	}
	first, _ := containers[0].(map[string]any)
	template := map[string]any{}
	switch add {
	case addEnv:
		template["spec"] = map[string]any{"containers": []any{map[string]any{
			"name": first["name"], "env": []any{map[string]any{"name": "INJECTED", "value": "by reconcile-lab inject"}},
		}}}
	case addAnnotation:
		template["metadata"] = map[string]any{"annotations": map[string]any{"example.com/injected": "by reconcile-lab inject"}}
	case addSidecar:
		// The node has this image already. Memcached listens on another port than the cache.
		template["spec"] = map[string]any{"containers": []any{map[string]any{
			"name": "injected", "image": first["image"], "args": []any{"--port=11299"},
		}}}
	default:
		return nil, badInput("--add: %q: must be one of: %s, %s, %s", add, addEnv, addAnnotation, addSidecar)
	}
	added := emptyConfiguration(target)
	added.Object["spec"] = map[string]any{"template": template}
	return added, nil
}

// emptyConfiguration returns an apply configuration that identifies the object and sets no
// field. The UID makes the API server refuse it for a recreated object.
func emptyConfiguration(target *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(target.GroupVersionKind())
	u.SetNamespace(target.GetNamespace())
	u.SetName(target.GetName())
	u.SetUID(target.GetUID())
	return u
}

func (foreign) inject(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	added := &unstructured.Unstructured{}
	if err := added.UnmarshalJSON(f.Object.Value); err != nil {
		return err
	}
	return member.Apply(ctx, client.ApplyConfigurationFromUnstructured(added), client.FieldOwner(f.Request.Manager), client.ForceOwnership)
}

func (foreign) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	empty := client.ApplyConfigurationFromUnstructured(emptyConfiguration(f.Object.Before))
	err = member.Apply(ctx, empty, client.FieldOwner(f.Request.Manager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return noteReplaced, nil
	}
	return "the foreign field does not exist any more", err
}

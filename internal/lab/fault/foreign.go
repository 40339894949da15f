package fault

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreign adds something inside the pod template by server-side apply in its own
// name, so that applying nothing in that name takes exactly it away again.
type foreign struct{}

// What a foreign fault can add.
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
		// One of its own for each: what a manager applied before and no longer names is
		// removed.
		r.Manager = "reconcile-lab-" + f.ID
	}
	if err := i.findChild(ctx, f); err != nil {
		return err
	}
	added, err := addition(f.Object.Before, r.Add)
	if err != nil {
		return err
	}
	if f.Object.Set, err = added.MarshalJSON(); err != nil {
		return err
	}
	f.What = fmt.Sprintf("%s %s: %s added to the pod template, by %s", r.Member, f.Object, map[string]string{
		addEnv: "env INJECTED", addAnnotation: "annotation example.com/injected", addSidecar: "container injected",
	}[r.Add], r.Manager)
	return nil
}

// addition is what is applied: it names nothing but what it adds.
func addition(to *unstructured.Unstructured, what string) (*unstructured.Unstructured, error) {
	containers, _, err := unstructured.NestedSlice(to.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return nil, badInput("%s/%s has no pod template: only a StatefulSet has", to.GetKind(), to.GetName())
	}
	first, _ := containers[0].(map[string]any)
	template := map[string]any{}
	switch what {
	case addEnv:
		template["spec"] = map[string]any{"containers": []any{map[string]any{
			"name": first["name"], "env": []any{map[string]any{"name": "INJECTED", "value": "by reconcile-lab inject"}},
		}}}
	case addAnnotation:
		template["metadata"] = map[string]any{"annotations": map[string]any{"example.com/injected": "by reconcile-lab inject"}}
	case addSidecar:
		// An image that the node has, and that ends at once only if it cannot run twice.
		template["spec"] = map[string]any{"containers": []any{map[string]any{
			"name": "injected", "image": first["image"], "args": []any{"--port=11299"},
		}}}
	default:
		return nil, badInput("--add %s: use %s, %s or %s", what, addEnv, addAnnotation, addSidecar)
	}
	added := bare(to)
	added.Object["spec"] = map[string]any{"template": template}
	return added, nil
}

// bare is an apply configuration that names the object and holds nothing.
func bare(of *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(of.GroupVersionKind())
	u.SetNamespace(of.GetNamespace())
	u.SetName(of.GetName())
	// Of one that was replaced meanwhile it would make another.
	u.SetUID(of.GetUID())
	return u
}

func (foreign) do(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	added := &unstructured.Unstructured{}
	if err := added.UnmarshalJSON(f.Object.Set); err != nil {
		return err
	}
	return member.Apply(ctx, client.ApplyConfigurationFromUnstructured(added), client.FieldOwner(f.Request.Manager), client.ForceOwnership)
}

func (foreign) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	err = member.Apply(ctx, client.ApplyConfigurationFromUnstructured(bare(f.Object.Before)), client.FieldOwner(f.Request.Manager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return "the object is gone or was replaced", nil
	}
	return "what was added is taken away", err
}

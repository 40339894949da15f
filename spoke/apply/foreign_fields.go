package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// removeForeign removes foreign fields from the pod template and writes nothing else. The
// patch names the resource version of the live object.
func (a *Applier) removeForeign(ctx context.Context, owner *Owner, step *Step) Result {
	key := step.Key()
	patched, err := a.patchTemplate(ctx, owner, step)
	if err != nil {
		return Result{Key: key, Action: RemoveForeign, Unobserved: true, Failure: failure.Of(err, "remove foreign fields from", key.String())}
	}
	a.writes.learnForeign(patched.GetUID(), drift.RestoredDefaults(step.Foreign, &owner.DriftPolicy, step.Fields, patched))
	a.writes.Store(key, a.namespace, patched)
	now := a.now()
	result := step.resultWith(patched)
	result.Change = &Change{Key: key, Action: RemoveForeign, Foreign: step.Foreign, Found: step.Live, DoneAt: now, Took: now.Sub(a.eventTime)}
	return result
}

func (a *Applier) patchTemplate(ctx context.Context, owner *Owner, step *Step) (client.Object, error) {
	template, err := drift.PruneTemplate(owner.Typer, step.Key().Kind, step.Live, step.Foreign)
	if err != nil {
		return nil, err
	}
	patch, err := jsonPatch(operation{"replace", "/metadata/resourceVersion", step.Live.GetResourceVersion()},
		operation{"replace", "/spec/template", template})
	if err != nil {
		return nil, err
	}
	return a.patch(ctx, step.Key(), patch, client.FieldOwner(drift.Remover))
}

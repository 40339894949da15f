package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// settledForeign stands for a hash in what a member taught: foreign fields that can't
// be removed, because the API server has a default for them.
const settledForeign = "foreign"

// strip removes foreign fields from the pod template and touches nothing else. The
// version that was looked at must be the present one.
func (a *Applier) strip(ctx context.Context, step *Step, report *Report) (stop bool) {
	key := step.Key()
	stripped, err := a.sendStripped(ctx, step)
	if err != nil {
		report.Unobserved = append(report.Unobserved, key)
		return report.fail(failure.Of(err, "remove foreign fields from", key.String()))
	}
	a.Writes.settle(string(stripped.GetUID()), drift.Settled(step.Foreign, &a.Owner.DriftPolicy, step.Wanted, stripped))
	a.Writes.Put(key, a.Namespace, stripped)
	report.keep(step, stripped)
	now := a.Now()
	report.Changes = append(report.Changes, Change{Key: key, Action: RemoveForeign, Foreign: step.Foreign, Found: step.Live, DoneAt: now, Took: now.Sub(a.Since)})
	return false
}

func (a *Applier) sendStripped(ctx context.Context, step *Step) (client.Object, error) {
	template, err := drift.TemplateWithout(a.Owner.Typer, step.Key().Kind, step.Live, step.Foreign)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]operation{
		{"replace", "/metadata/resourceVersion", step.Live.GetResourceVersion()},
		{"replace", "/spec/template", template},
	})
	if err != nil {
		return nil, err
	}
	stripped, err := a.newObject(step.Key())
	if err != nil {
		return nil, err
	}
	err = a.Client.Patch(ctx, stripped, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(drift.Remover))
	return stripped, err
}

// settle notes foreign fields that were there again when they had been removed.
func (r *WriteCache) settle(uid string, fields *drift.Fields) {
	if fields.Empty() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := lesson{uid, settledForeign}
	if known := r.known[at]; known != nil {
		fields = fields.Union(known)
	}
	r.known[at] = fields
}

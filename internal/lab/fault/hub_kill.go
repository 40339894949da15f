package fault

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// hubKill kills the hub manager, so that it cannot shut down gracefully.
type hubKill struct{}

func (hubKill) prepare(_ context.Context, _ *Injector, f *Fault) error {
	f.Description = "the hub manager is killed"
	return nil
}

func (hubKill) inject(ctx context.Context, i *Injector, f *Fault) error {
	err := i.lab.KillManager(ctx)
	if errors.Is(err, lab.ErrNoManager) {
		return i.deleteManagerPods(ctx, f)
	}
	if err == nil && f.Request.Restart {
		f.Description, f.NoUndo = "the hub manager was killed and runs again", true
		err = i.lab.StartManager(ctx, i.provider, i.report)
	}
	return err
}

// deleteManagerPods kills a hub manager that runs as a Deployment in the hub.
func (i *Injector) deleteManagerPods(ctx context.Context, f *Fault) error {
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := hub.List(ctx, &pods, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return errors.New("this lab has no hub manager; start it with `reconcile-lab up`, or on kind with `make deploy`")
	}
	for k := range pods.Items {
		if err := hub.Delete(ctx, &pods.Items[k], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	f.Description, f.NoUndo = "the pod of the hub manager is deleted, its Deployment recreates it", true
	return nil
}

func (hubKill) undo(ctx context.Context, i *Injector, _ *Fault) (string, error) {
	err := i.lab.StartManager(ctx, i.provider, i.report)
	if errors.Is(err, lab.ErrNoManager) {
		return "the Deployment of the hub manager has recreated its pod", nil
	}
	return "the hub manager runs again", err
}

package fault

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// kill is a hub manager that is killed without a chance to put anything in order.
type kill struct{}

func (kill) prepare(_ context.Context, _ *Injector, f *Fault) error {
	f.What = "the hub manager is killed"
	return nil
}

func (kill) do(ctx context.Context, i *Injector, f *Fault) error {
	err := i.Lab.KillManager(ctx)
	if errors.Is(err, lab.ErrNoManager) {
		return i.killPod(ctx, f)
	}
	if err == nil && f.Request.Restart {
		f.What, f.Over = "the hub manager was killed and is started again", true
		err = i.Lab.StartManager(ctx, i.Provider, i.Report)
	}
	return err
}

// killPod is for a lab whose manager is a Deployment in the hub.
func (i *Injector) killPod(ctx context.Context, f *Fault) error {
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := hub.List(ctx, &pods, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return errors.New("no hub manager runs in this lab: start it with `reconcile-lab up`, on kind with `make deploy`")
	}
	for k := range pods.Items {
		if err := hub.Delete(ctx, &pods.Items[k], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	f.What, f.Over = "the hub manager's pod is deleted; its Deployment starts another", true
	return nil
}

func (kill) undo(ctx context.Context, i *Injector, _ *Fault) (string, error) {
	err := i.Lab.StartManager(ctx, i.Provider, i.Report)
	if errors.Is(err, lab.ErrNoManager) {
		return "its Deployment has started another", nil
	}
	return "it runs again", err
}

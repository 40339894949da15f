package fault

import (
	"context"
	"fmt"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// ClusterControl is a provider that can stop and pause a cluster. lab.Provider's Create
// starts a stopped cluster.
type ClusterControl interface {
	// Stop ends the API server of the cluster: it refuses connections.
	Stop(ctx context.Context, cluster string) error
	// Pause stops the execution of the API server, while its connections stay open.
	Pause(ctx context.Context, cluster string) error
	// Resume undoes Pause. A cluster that is not paused is not an error.
	Resume(ctx context.Context, cluster string) error
}

func (i *Injector) clusterControl() (ClusterControl, error) {
	control, ok := i.provider.(ClusterControl)
	if !ok {
		return nil, fmt.Errorf("provider %s cannot stop or pause a cluster", i.provider.Name())
	}
	return control, nil
}

// memberDown stops the API server of a member.
type memberDown struct{}

func (memberDown) prepare(_ context.Context, i *Injector, f *Fault) error {
	f.Description = f.Request.Member + " is stopped: its API server refuses connections"
	return i.checkMember(f)
}

func (memberDown) inject(ctx context.Context, i *Injector, f *Fault) error {
	control, err := i.clusterControl()
	if err != nil {
		return err
	}
	return control.Stop(ctx, f.Request.Member)
}

func (memberDown) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	i.report("starting " + f.Request.Member)
	if err := i.provider.Create(ctx, f.Request.Member, lab.RoleMember, i.report); err != nil {
		return "", err
	}
	if err := i.lab.RefreshKubeconfig(ctx, i.provider); err != nil {
		return "", err
	}
	return f.Request.Member + " runs again", i.updateCredentialServer(ctx, f.Request.Member)
}

// hang pauses a member.
type hang struct{}

func (hang) prepare(_ context.Context, i *Injector, f *Fault) error {
	f.Description = f.Request.Member + " is paused: its connections stay open, no request is answered"
	if stopped, ok := i.state.find(f.Request.Member, MemberDown); ok {
		return badInput("%s is stopped, so it cannot be paused; first run reconcile-lab inject --undo %s", f.Request.Member, stopped.ID)
	}
	return i.checkMember(f)
}

func (hang) inject(ctx context.Context, i *Injector, f *Fault) error {
	control, err := i.clusterControl()
	if err != nil {
		return err
	}
	return control.Pause(ctx, f.Request.Member)
}

func (hang) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	control, err := i.clusterControl()
	if err != nil {
		return "", err
	}
	if err := control.Resume(ctx, f.Request.Member); err != nil {
		return "", fmt.Errorf("resume %s: %w", f.Request.Member, err)
	}
	return f.Request.Member + " continues", nil
}

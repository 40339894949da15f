package fault

import (
	"context"
	"fmt"
)

// down is a member whose API server is stopped.
type down struct{}

func (down) prepare(_ context.Context, i *Injector, f *Fault) error {
	f.What = f.Request.Member + " is stopped: connections to its API server are refused"
	return i.needsMember(f)
}

func (down) do(ctx context.Context, i *Injector, f *Fault) error {
	b, err := i.breaker()
	if err != nil {
		return err
	}
	return b.Stop(ctx, f.Request.Member)
}

func (down) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	i.Report("starting " + f.Request.Member + " again")
	if err := i.Provider.Create(ctx, f.Request.Member, "member", i.Report); err != nil {
		return "", err
	}
	if err := i.Lab.RefreshKubeconfig(ctx, i.Provider); err != nil {
		return "", err
	}
	return "it runs again", i.follow(ctx, f.Request.Member)
}

// hang is a member that keeps its connections and does not answer.
type hang struct{}

func (hang) prepare(_ context.Context, i *Injector, f *Fault) error {
	f.What = f.Request.Member + " is frozen: its connections stay open, and nothing answers"
	if has, ok := i.state.on(f.Request.Member, MemberDown); ok {
		return badInput("%s is stopped, so it cannot hang: undo that first with reconcile-lab inject --undo %s", f.Request.Member, has.ID)
	}
	return i.needsMember(f)
}

func (hang) do(ctx context.Context, i *Injector, f *Fault) error {
	b, err := i.breaker()
	if err != nil {
		return err
	}
	return b.Freeze(ctx, f.Request.Member)
}

func (hang) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	b, err := i.breaker()
	if err != nil {
		return "", err
	}
	if err := b.Thaw(ctx, f.Request.Member); err != nil {
		return "", fmt.Errorf("wake %s: %w", f.Request.Member, err)
	}
	return "it goes on where it was", nil
}

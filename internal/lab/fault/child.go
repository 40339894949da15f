package fault

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drift changes one field of a child once.
type drift struct{}

func (drift) prepare(ctx context.Context, i *Injector, f *Fault) error {
	return i.findField(ctx, f)
}

func (drift) inject(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	changed, err := f.Object.setField(ctx, member, f.Request.Manager)
	if err == nil && !changed {
		err = badInput("%s %s already has this value; set another one with --value", f.Object, f.Object.Field)
	}
	return err
}

func (drift) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	return f.Object.restoreField(ctx, member, f.Request.Manager)
}

// deletion deletes a child and its dependents.
type deletion struct{}

func (deletion) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.findChild(ctx, f); err != nil {
		return err
	}
	f.Description = fmt.Sprintf("%s %s is deleted", f.Request.Member, f.Object)
	return nil
}

func (deletion) inject(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(member.Delete(ctx, f.Object.Before.DeepCopy(), client.PropagationPolicy("Background")))
}

func (deletion) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	return f.Object.recreate(ctx, member, f.Request.Manager)
}

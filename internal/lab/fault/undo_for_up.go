package fault

import (
	"context"
	"errors"
	"slices"
)

// UndoForUp undoes the faults that would make a cluster look broken to lab.Up, which would
// then recreate it. Other faults stay recorded; Undo removes them once the lab runs.
func (i *Injector) UndoForUp(ctx context.Context) error {
	unlock, err := i.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	newestFirst := slices.Clone(i.state.Faults)
	slices.Reverse(newestFirst)
	var failed []error
	for _, f := range newestFirst {
		undone, err := i.undoForUp(ctx, &f)
		if err != nil {
			failed = append(failed, err)
		} else if undone {
			i.state.remove(f.ID)
		}
	}
	return errors.Join(append(failed, i.state.save(i.lab))...)
}

// undoForUp reports whether the fault is undone, or undone by lab.Up itself.
func (i *Injector) undoForUp(ctx context.Context, f *Fault) (undone bool, err error) {
	switch f.Request.Fault {
	case MemberDown, HubKill:
		return true, nil
	case Hang:
		_, err := (hang{}).undo(ctx, i, f)
		return err == nil, err
	case Partition:
		network, ok := i.provider.(NetworkControl)
		if !ok || !f.Disconnected {
			return false, nil
		}
		err := network.Reconnect(ctx, f.Request.Member)
		return err == nil, err
	}
	return false, nil
}

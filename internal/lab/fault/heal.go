package fault

import (
	"context"
	"errors"
	"slices"
)

// Heal undoes what it can of every fault before a lab is made whole by up: clusters
// that are frozen or cut off would look like broken ones. What cannot be undone yet
// stays recorded, for an Undo once the lab runs.
func (i *Injector) Heal(ctx context.Context) error {
	unlock, err := i.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	chosen := slices.Clone(i.state.Faults)
	slices.Reverse(chosen)
	var failed []error
	for _, f := range chosen {
		switch f.Request.Fault {
		case MemberDown, HubKill:
			// That is what up puts right.
			i.state.drop(f.ID)
		case Hang:
			if _, err := (hang{}).undo(ctx, i, &f); err != nil {
				failed = append(failed, err)
				continue
			}
			i.state.drop(f.ID)
		case Partition:
			cutter, ok := i.Provider.(Cutter)
			if !ok || f.Network == "" {
				continue
			}
			if err := cutter.Mend(ctx, f.Request.Member, f.Network); err != nil {
				failed = append(failed, err)
				continue
			}
			i.state.drop(f.ID)
		}
	}
	return errors.Join(append(failed, i.state.save(i.Lab))...)
}

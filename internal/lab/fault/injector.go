package fault

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries/filelock"
)

// undoTimeout limits the undo of a fault whose injection has failed.
const undoTimeout = 30 * time.Second

// Options are the options of New.
type Options struct {
	// Lab and Provider are the lab into which faults are injected. Both are required.
	Lab      *lab.Lab
	Provider lab.Provider
	// Report receives the current step of an operation. It is optional.
	Report lab.Report
}

// Injector injects faults into one lab and undoes them.
type Injector struct {
	lab      *lab.Lab
	provider lab.Provider
	report   lab.Report

	state *state
}

// New returns an injector for one lab.
func New(o Options) (*Injector, error) {
	if o.Lab == nil || o.Provider == nil {
		return nil, errors.New("fault injector: Lab and Provider are required")
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	return &Injector{lab: o.Lab, provider: o.Provider, report: o.Report}, nil
}

// Inject injects a fault.
func (i *Injector) Inject(ctx context.Context, r Request) (Fault, error) {
	kind, err := kindOf(r.Fault)
	if err != nil {
		return Fault{}, err
	}
	unlock, err := i.open(ctx)
	if err != nil {
		return Fault{}, err
	}
	defer unlock()
	if r.Member != "" {
		if err := i.checkMemberExists(r.Member); err != nil {
			return Fault{}, err
		}
	}
	i.state.LastNumber++
	f := Fault{ID: fmt.Sprintf("%s-%d", r.Fault, i.state.LastNumber), Request: r, Since: time.Now().UTC().Truncate(time.Second)}
	if err := kind.action.prepare(ctx, i, &f); err != nil {
		return Fault{}, err
	}
	// Saved before the injection, so that the fault can be undone after an interruption.
	i.state.put(f)
	if err := i.state.save(i.lab); err != nil {
		return Fault{}, err
	}
	if err := kind.action.inject(ctx, i, &f); err != nil {
		undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		if _, undoErr := kind.action.undo(undoCtx, i, &f); undoErr != nil {
			return Fault{}, errors.Join(err, fmt.Errorf("undo %s after the failure: %w; run reconcile-lab inject --undo %s", f.ID, undoErr, f.ID))
		}
		i.state.remove(f.ID)
		return Fault{}, errors.Join(err, i.state.save(i.lab))
	}
	if f.NoUndo {
		i.state.remove(f.ID)
	} else {
		i.state.put(f)
	}
	return f, i.state.save(i.lab)
}

// Undone is a fault that was undone.
type Undone struct {
	Fault
	// Note describes the result of the undo.
	Note string
}

// Undo undoes the fault with that ID, all faults with that name, or all faults if idOrName
// is empty. The newest is undone first. After a failure, Undo continues with the others.
func (i *Injector) Undo(ctx context.Context, idOrName string) ([]Undone, error) {
	unlock, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	selected, err := i.selectFaults(idOrName)
	if err != nil {
		return nil, err
	}
	var undone []Undone
	var failed []error
	for _, f := range selected {
		kind, err := kindOf(f.Request.Fault)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		note, err := kind.action.undo(ctx, i, &f)
		if err != nil {
			failed = append(failed, fmt.Errorf("undo %s: %w", f.ID, err))
			continue
		}
		i.state.remove(f.ID)
		if err := i.state.save(i.lab); err != nil {
			return undone, errors.Join(append(failed, err)...)
		}
		undone = append(undone, Undone{f, note})
	}
	return undone, errors.Join(failed...)
}

// selectFaults returns the recorded faults with that ID or name, or all, newest first.
func (i *Injector) selectFaults(idOrName string) ([]Fault, error) {
	selected := slices.Clone(i.state.Faults)
	slices.Reverse(selected)
	if idOrName == "" {
		return selected, nil
	}
	selected = slices.DeleteFunc(selected, func(f Fault) bool { return f.ID != idOrName && f.Request.Fault != idOrName })
	if len(selected) > 0 {
		return selected, nil
	}
	var ids []string
	for _, f := range i.state.Faults {
		ids = append(ids, f.ID)
	}
	if len(ids) == 0 {
		return nil, badInput("fault: %q: not found; lab %s has no faults", idOrName, i.lab.Name)
	}
	return nil, badInput("fault: %q: not found in lab %s; use one of: %s", idOrName, i.lab.Name, strings.Join(ids, ", "))
}

// List returns the faults of a lab, the oldest first.
func List(l *lab.Lab) ([]Fault, error) {
	s, err := load(l)
	if err != nil {
		return nil, err
	}
	return s.Faults, nil
}

// open locks and reads the record of faults.
func (i *Injector) open(ctx context.Context) (unlock func(), err error) {
	unlock, err = filelock.Take(ctx, filepath.Join(faultDir(i.lab), ".lock"), func() { i.report("waiting for another command that injects faults") })
	if err != nil {
		return nil, err
	}
	if i.state, err = load(i.lab); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// checkMemberExists returns an error if the lab has no such member.
func (i *Injector) checkMemberExists(member string) error {
	s, err := i.lab.Load()
	if err != nil {
		return err
	}
	if !slices.Contains(s.Members, member) {
		return badInput("member: %q: not found in lab %s; use one of: %s", member, i.lab.Name, strings.Join(s.Members, ", "))
	}
	return nil
}

// checkMember validates the member of a fault that affects a whole member. A member can
// have each such fault once.
func (i *Injector) checkMember(f *Fault) error {
	if f.Request.Member == "" {
		s, err := i.lab.Load()
		if err != nil {
			return err
		}
		return badInput("%s: MEMBER is missing; use one of: %s", f.Request.Fault, strings.Join(s.Members, ", "))
	}
	if existing, ok := i.state.find(f.Request.Member, f.Request.Fault); ok {
		return badInput("%s already has this fault; first run reconcile-lab inject --undo %s", f.Request.Member, existing.ID)
	}
	return nil
}

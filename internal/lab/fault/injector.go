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

// Breaker is a provider that can break a cluster. Start is lab.Provider's Create.
type Breaker interface {
	// Stop ends the cluster's API server: connections to it are refused.
	Stop(ctx context.Context, cluster string) error
	// Freeze keeps it from doing anything, while its connections stay open.
	Freeze(ctx context.Context, cluster string) error
	// Thaw undoes Freeze; it is no error if nothing is frozen.
	Thaw(ctx context.Context, cluster string) error
}

// Injector injects faults into one lab.
type Injector struct {
	Lab      *lab.Lab
	Provider lab.Provider
	// Report is told each step that takes a while.
	Report lab.Report

	state *state
}

// Inject makes a fault.
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
		if err := i.knows(r.Member); err != nil {
			return Fault{}, err
		}
	}
	i.state.Last++
	f := Fault{ID: fmt.Sprintf("%s-%d", r.Fault, i.state.Last), Request: r, Since: time.Now().UTC().Truncate(time.Second)}
	if err := kind.action.prepare(ctx, i, &f); err != nil {
		return Fault{}, err
	}
	// Recorded first, so that it can be undone however this ends.
	i.state.put(f)
	if err := i.state.save(i.Lab); err != nil {
		return Fault{}, err
	}
	if err := kind.action.do(ctx, i, &f); err != nil {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if _, undone := kind.action.undo(back, i, &f); undone != nil {
			return Fault{}, errors.Join(err, fmt.Errorf("undo of what was done of it: %w: run reconcile-lab inject --undo %s", undone, f.ID))
		}
		i.state.drop(f.ID)
		return Fault{}, errors.Join(err, i.state.save(i.Lab))
	}
	if f.Over {
		i.state.drop(f.ID)
	} else {
		i.state.put(f)
	}
	return f, i.state.save(i.Lab)
}

// Undone is a fault that is gone, and what its undo found.
type Undone struct {
	Fault
	Note string
}

// Undo undoes what is named by ID or by the fault's name, or everything, the last
// first. It goes on with the others when one fails.
func (i *Injector) Undo(ctx context.Context, which string) ([]Undone, error) {
	unlock, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	chosen := slices.Clone(i.state.Faults)
	slices.Reverse(chosen)
	if which != "" {
		chosen = slices.DeleteFunc(chosen, func(f Fault) bool { return f.ID != which && f.Request.Fault != which })
		if len(chosen) == 0 {
			if _, err := kindOf(which); err == nil {
				return nil, badInput("lab %s has no fault %s now: see reconcile-lab inject list", i.Lab.Name, which)
			}
			return nil, badInput("there is no fault %s: %s", which, i.there())
		}
	}
	var undone []Undone
	var failed []error
	for _, f := range chosen {
		kind, err := kindOf(f.Request.Fault)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		note, err := kind.action.undo(ctx, i, &f)
		if err != nil {
			failed = append(failed, fmt.Errorf("undo of %s: %w", f.ID, err))
			continue
		}
		i.state.drop(f.ID)
		if err := i.state.save(i.Lab); err != nil {
			return undone, errors.Join(append(failed, err)...)
		}
		undone = append(undone, Undone{f, note})
	}
	return undone, errors.Join(failed...)
}

// there says which faults there are.
func (i *Injector) there() string {
	var ids []string
	for _, f := range i.state.Faults {
		ids = append(ids, f.ID)
	}
	if len(ids) == 0 {
		return "lab " + i.Lab.Name + " has none"
	}
	return "choose from " + strings.Join(ids, ", ")
}

// List gives the faults that there are, in the order in which they were made.
func List(l *lab.Lab) ([]Fault, error) {
	s, err := load(l)
	if err != nil {
		return nil, err
	}
	return s.Faults, nil
}

// open locks the record and reads it.
func (i *Injector) open(ctx context.Context) (func(), error) {
	if i.Report == nil {
		i.Report = func(string) {}
	}
	unlock, err := filelock.Take(ctx, filepath.Join(dir(i.Lab), ".lock"), func() { i.Report("waiting for another command that injects faults") })
	if err != nil {
		return nil, err
	}
	if i.state, err = load(i.Lab); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func (i *Injector) breaker() (Breaker, error) {
	b, ok := i.Provider.(Breaker)
	if !ok {
		return nil, fmt.Errorf("provider %s cannot break a cluster", i.Provider.Name())
	}
	return b, nil
}

// knows is an error if the lab has no such member.
func (i *Injector) knows(member string) error {
	s, err := i.Lab.Load()
	if err != nil {
		return err
	}
	if !slices.Contains(s.Members, member) {
		return badInput("there is no member %q in lab %s: choose from %s", member, i.Lab.Name, strings.Join(s.Members, ", "))
	}
	return nil
}

// needsMember checks a fault that is about a whole member and cannot be there
// twice.
func (i *Injector) needsMember(f *Fault) error {
	if f.Request.Member == "" {
		s, err := i.Lab.Load()
		if err != nil {
			return err
		}
		return badInput("name the member: reconcile-lab inject %s MEMBER, one of %s", f.Request.Fault, strings.Join(s.Members, ", "))
	}
	if has, ok := i.state.on(f.Request.Member, f.Request.Fault); ok {
		return badInput("%s has this fault already: undo it first with reconcile-lab inject --undo %s", f.Request.Member, has.ID)
	}
	return nil
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Down removes the lab: its manager, clusters and files. It is no error if there
// is no such lab.
func Down(ctx context.Context, l *Lab, p Provider, report func(subject, step string)) error {
	o := Options{Report: report}
	unlock, err := l.lock(ctx, o.on(""))
	if err != nil {
		return err
	}
	defer unlock()
	// A damaged record names no manager that could be ended gracefully; it has no
	// work without clusters and is found by its usual name.
	state, err := l.Load()
	if err != nil || state.Manager == nil {
		state.Manager = &Manager{Binary: "hub"}
	}
	if err := l.stopManager(ctx, &state); err != nil {
		return err
	}
	clusters, err := p.List(ctx)
	if err != nil {
		return err
	}
	if err := parallel(ctx, clusters, func(ctx context.Context, cluster string) error {
		report(cluster, "removing it")
		if err := p.Delete(ctx, cluster); err != nil {
			return err
		}
		report(cluster, Removed)
		return nil
	}); err != nil {
		return err
	}
	return l.remove()
}

// remove deletes the lab's folder, then what names it, and the folder of all labs with
// the last one.
func (l *Lab) remove() error {
	var naming []string
	for _, file := range []string{currentFile, begunFile} {
		is, err := named(file)
		if err != nil {
			return err
		}
		if is == "" || is == l.Name {
			naming = append(naming, file)
		}
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("remove the files of lab %s: %w", l.Name, err)
	}
	root := filepath.Dir(l.Dir)
	for _, file := range naming {
		if err := os.Remove(filepath.Join(root, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// A lab that is there, or that is being made at this moment, keeps the folder.
	_ = os.Remove(root)
	return nil
}

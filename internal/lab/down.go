package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Down removes the lab: its manager, clusters and files. A lab that does not exist is not an
// error.
func Down(ctx context.Context, l *Lab, p Provider, report func(subject, step string)) error {
	unlock, err := l.lock(ctx, func(step string) { report("", step) })
	if err != nil {
		return err
	}
	defer unlock()
	// A damaged lab.json contains no manager. Its process is then found by the default name.
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
		report(cluster, "removing the cluster")
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

// remove deletes the directory of the lab, then the files that name the lab. With the last
// lab it also deletes the directory of all labs.
func (l *Lab) remove() error {
	var references []string
	for _, file := range []string{currentFile, begunFile} {
		name, err := readLabName(file)
		if err != nil {
			return err
		}
		if name == "" || name == l.Name {
			references = append(references, file)
		}
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("remove the files of lab %s: %w", l.Name, err)
	}
	root := filepath.Dir(l.Dir)
	for _, file := range references {
		if err := os.Remove(filepath.Join(root, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// This fails if another lab exists, or is being created at this moment.
	_ = os.Remove(root)
	return nil
}

// Package filelock keeps two processes from doing the same thing at once. The
// kernel drops a lock when its process ends, however it ends, so that no lock is
// ever left behind. It works between the goroutines of one process as well.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Take locks the file, which it creates with its folder where there is none, and
// returns the function that gives the lock back. It calls waiting once if another
// holds it, and gives up when ctx ends. Whoever holds the lock may remove the file.
func Take(ctx context.Context, path string, waiting func()) (func(), error) {
	var held *os.File
	said := false
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		file, err := try(path)
		if file == nil && err == nil && !said {
			said = true
			waiting()
		}
		held = file
		return file != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = held.Close() }, nil
}

// try returns the locked file, or nil if somebody else has it.
func try(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder was removed since.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// The last holder may have removed the file after it was opened here; then the
	// lock guards nothing that a newcomer would see.
	mine, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(mine, now) {
		return nil, file.Close()
	}
	return file, nil
}

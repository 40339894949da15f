// Package filelock provides locks between processes, and between goroutines of one process.
// The kernel releases a lock when its process ends, so no lock can become stale.
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

// Take locks the file and returns a function that unlocks it. It creates a missing file and
// directory. If another process has the lock, Take calls waiting once and waits until ctx
// ends. The owner of the lock may remove the file.
func Take(ctx context.Context, path string, waiting func()) (func(), error) {
	var locked *os.File
	reported := false
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		file, err := try(path)
		if file == nil && err == nil && !reported {
			reported = true
			waiting()
		}
		locked = file
		return file != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = locked.Close() }, nil
}

// try returns the locked file, or nil if another owner has the lock.
func try(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// The owner of the lock has removed the directory.
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
	// The last owner may have removed the file after this call opened it. A lock on the
	// removed file would not exclude others, which create a new file.
	opened, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if current, err := os.Stat(path); err != nil || !os.SameFile(opened, current) {
		return nil, file.Close()
	}
	return file, nil
}

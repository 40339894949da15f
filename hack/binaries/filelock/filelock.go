// Package filelock keeps two processes from doing the same thing at once. The
// kernel drops a lock when its process ends, however it ends, so that no lock is
// ever left behind. It works between the goroutines of one process as well.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Take locks the file, which it creates where there is none, and returns the
// function that gives the lock back. It calls waiting once if another holds it,
// and gives up when ctx ends. The file stays: removing it would let a third
// process lock a new file while a second still waits for the old one.
func Take(ctx context.Context, path string, waiting func()) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	said := false
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			if !said {
				said = true
				waiting()
			}
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "lock")
	var holders, most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			release, err := Take(t.Context(), path, func() {})
			if err != nil {
				t.Error(err)
				return
			}
			if n := holders.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(5 * time.Millisecond)
			holders.Add(-1)
			// Every other holder removes the file, as the deletion of a lab does.
			if holders.Load()%2 == 0 {
				_ = os.RemoveAll(filepath.Dir(path))
			}
			release()
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held the lock at once", most.Load())
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Take(t.Context(), path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	_, err = Take(ctx, path, func() { told++; cancel() })
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("Take of a held lock: error %v, told %d times that it waits", err, told)
	}
}

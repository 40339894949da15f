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

func TestTake_HasOneOwnerAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "lock")
	var owners, most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			release, err := Take(t.Context(), path, func() {})
			if err != nil {
				t.Error(err)
				return
			}
			if n := owners.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(5 * time.Millisecond)
			owners.Add(-1)
			// Some owners remove the file, as the deletion of a lab does.
			if owners.Load()%2 == 0 {
				_ = os.RemoveAll(filepath.Dir(path))
			}
			release()
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d owners had the lock at the same time", most.Load())
	}
}

func TestTake_StopsWaitingWhenTheContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Take(t.Context(), path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	reports := 0
	_, err = Take(ctx, path, func() { reports++; cancel() })
	if !errors.Is(err, context.Canceled) || reports != 1 {
		t.Errorf("Take of a locked file: error %v, %d calls of waiting", err, reports)
	}
}

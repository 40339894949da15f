package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// liveHeap returns the bytes that the manager's last garbage collection found
// reachable. It waits for two collections that start after the call: objects with
// finalizers and pooled buffers survive the first. Each scrape allocates, so scraping
// brings the next collection about.
func (m *manager) liveHeap(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for first := -1.0; ; {
		families, err := m.scrape(ctx)
		if err != nil {
			return 0, err
		}
		collections, err := families.gauge("go_gc_cycles_total_gc_cycles_total")
		if err != nil {
			return 0, err
		}
		if first < 0 {
			first = collections
		}
		// A collection may be under way at the first scrape, so it does not count.
		if collections >= first+3 {
			return families.gauge("go_gc_heap_live_bytes")
		}
	}
}

// startEmpty removes all caches, restarts the manager and returns its live heap. After the
// restart neither the history of the run nor garbage counts.
func (f *fleet) startEmpty(ctx context.Context) (heap float64, err error) {
	if err := f.removeAll(ctx); err != nil {
		return 0, err
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return 0, err
	}
	if _, _, err := f.manager.restart(ctx); err != nil {
		return 0, err
	}
	// One cache that comes and goes shows that the manager has engaged every member, and
	// fills what is allocated once.
	warmUp := cacheName("first", 0)
	if _, err := f.create(ctx, warmUp); err != nil {
		return 0, err
	}
	if err := f.remove(ctx, warmUp); err != nil {
		return 0, err
	}
	if err := f.settle(ctx, quietTime); err != nil {
		return 0, err
	}
	return f.manager.liveHeap(ctx)
}

// measureHeap compares the live heap of the manager with and without caches. The
// caches have no pods, which a member's kubelet would report repeatedly.
func (f *fleet) measureHeap(ctx context.Context) (err error) {
	if f.profile != "" {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		if err := os.Setenv("GODEBUG", profileRate); err != nil {
			return err
		}
		f.manager.extra = []string{pprofFlag + address}
		defer func() { f.manager.extra = nil }()
	}
	empty, err := f.startEmpty(ctx)
	if err != nil {
		return err
	}
	if _, err := f.createBurst(ctx, cacheNames("heap", f.heapCaches), 0); err != nil {
		return err
	}
	full, err := f.manager.liveHeap(ctx)
	if err != nil {
		return err
	}
	u := &f.report.Manager
	u.HeapCaches, u.EmptyHeapBytes, u.HeapBytes = f.heapCaches, empty, full
	u.BytesPerMemberCache = f.bytesPerMemberCache(empty, full, f.heapCaches)
	if f.profile == "" {
		return nil
	}
	return f.manager.writeHeapProfile(ctx, f.profile)
}

func (f *fleet) bytesPerMemberCache(empty, full float64, caches int) float64 {
	return (full - empty) / float64(caches*len(f.members()))
}

const pprofFlag = "--pprof-bind-address="

// profileRate samples one of 4 KiB instead of one of 512 KiB: a few hundred small objects
// must show. The manager inherits it.
const profileRate = "memprofilerate=4096"

// writeHeapProfile saves what is live after a collection, by the place that allocated it.
func (m *manager) writeHeapProfile(ctx context.Context, path string) error {
	url := "http://" + m.extra[0][len(pprofFlag):] + "/debug/pprof/heap?gc=1"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := plainHTTP.Do(request)
	if err != nil {
		return fmt.Errorf("heap profile of the hub manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("heap profile of the hub manager: %s", response.Status)
	}
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("heap profile of the hub manager: %w", err)
	}
	return os.WriteFile(path, profile, 0o644)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

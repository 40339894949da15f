package harness

import (
	"context"
	"errors"
	"io"
	"sync"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Fleet is a hub and its members, without a manager.
type Fleet struct {
	Hub     *Server
	Members map[string]*Member

	context context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	mu      sync.Mutex
	failure error
}

// Member is a member's API server and what stands in for its controllers.
type Member struct {
	*Server
	StandIn *StandIn
}

// StartFleet starts all API servers at the same time, the hub's with the CRDs of a folder. It
// starts the members' stand-ins, each after change, if any. The caller must call Stop on the
// result, also after an error.
func StartFleet(ctx context.Context, crds string, change func(*StandIn), members ...string) (*Fleet, error) {
	f := &Fleet{Members: map[string]*Member{}}
	f.context, f.cancel = context.WithCancel(ctx)
	var (
		mu       sync.Mutex
		failure  error
		starting sync.WaitGroup
	)
	begin := func(keep func(*Server), crds ...string) {
		starting.Go(func() {
			s, err := Start(ctx, crds...)
			mu.Lock()
			defer mu.Unlock()
			failure = errors.Join(failure, err)
			if err == nil {
				keep(s)
			}
		})
	}
	begin(func(s *Server) { f.Hub = s }, crds)
	for _, name := range members {
		begin(func(s *Server) { f.Members[name] = &Member{s, NewStandIn(s)} })
	}
	starting.Wait()
	if failure != nil {
		return f, failure
	}
	for _, m := range f.Members {
		if change != nil {
			change(m.StandIn)
		}
		f.Go(m.StandIn.Run)
	}
	return f, nil
}

// Go runs work until Stop, which waits for its end and returns its error.
func (f *Fleet) Go(work func(context.Context) error) {
	f.working.Go(func() {
		err := work(f.context)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failure = errors.Join(f.failure, err)
	})
}

// Stop ends the Stand-ins and all API servers, and removes their files.
func (f *Fleet) Stop() error {
	f.cancel()
	f.working.Wait()
	err := f.failure
	for _, m := range f.Members {
		err = errors.Join(err, m.Stop())
	}
	if f.Hub != nil {
		err = errors.Join(err, f.Hub.Stop())
	}
	return err
}

// Log shows what the manager and its libraries log, or nothing of it.
func Log(shown bool) {
	logger := zap.New(zap.WriteTo(io.Discard))
	if shown {
		logger = zap.New(zap.UseDevMode(true))
	}
	log.SetLogger(logger)
	klog.SetLogger(logger)
}

package apply

import (
	"context"
	"maps"
	"sync"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// claims are the children that a plan is being applied to. They serialize caches of one hub
// that desire the same child, so that the second one reads what the first one created. It is
// safe for concurrent use.
type claims struct {
	mu sync.Mutex
	// claimed holds, for each child, a channel that closes at its release.
	claimed map[childKey]chan struct{}
}

// childKey identifies a child in a member.
type childKey struct {
	Key
	namespace string
}

// acquire claims the children of all steps, and returns the function that releases them. It
// waits until no other plan claims one of them, but not longer than ctx.
func (c *claims) acquire(ctx context.Context, namespace string, steps []Step) (release func(), err error) {
	for {
		claim, other := c.tryAcquire(namespace, steps)
		if other == nil {
			return func() { c.release(claim) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, &abortError{failure: &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonMemberError,
				Message: "another CacheCluster with a child of the same name is being applied in the member", Err: ctx.Err()}}
		}
	}
}

// tryAcquire claims all children or none. In the latter case it returns the claim that
// blocks it.
func (c *claims) tryAcquire(namespace string, steps []Step) (claim, other chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range steps {
		if other, claimed := c.claimed[childKey{steps[i].Key(), namespace}]; claimed {
			return nil, other
		}
	}
	claim = make(chan struct{})
	if c.claimed == nil {
		c.claimed = map[childKey]chan struct{}{}
	}
	for i := range steps {
		c.claimed[childKey{steps[i].Key(), namespace}] = claim
	}
	return claim, nil
}

func (c *claims) release(claim chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.claimed, func(_ childKey, other chan struct{}) bool { return other == claim })
	close(claim)
}

package controller

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// errStaleCache: the hub's cache shows a MemberCache that has changed since. The event of
// the newer one is on its way.
var errStaleCache = errors.New("the hub's cache is stale")

// preflight verifies the MemberCache before a plan deletes a child.
func (m *member) preflight(ctx context.Context, s *snapshot, d decision) decision {
	if d.failure == nil && len(d.plan.Prune) > 0 {
		d.unverified = m.verify(ctx, s.cache)
	}
	return d
}

// verify reads the MemberCache from the hub's API server and returns errStaleCache if the
// cache shows another one. The cache may show a MemberCache that was deleted, while another
// one of the same name and owner exists, whose children carry the same mark. Or it may show
// an older spec, which does not contain a child yet.
func (m *member) verify(ctx context.Context, mc *v1alpha1.MemberCache) error {
	ctx, cancel := context.WithTimeout(ctx, hubDeadline)
	defer cancel()
	live := &v1alpha1.MemberCache{}
	err := m.hub.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(mc), live)
	switch {
	case apierrors.IsNotFound(err):
		return errStaleCache
	case err != nil:
		return fmt.Errorf("verify MemberCache %s on the hub: %w", mc.Name, err)
	case live.UID != mc.UID || live.Generation != mc.Generation:
		return errStaleCache
	}
	return nil
}

// unverified returns the result of a reconcile whose MemberCache could not be verified. A
// stale cache is a matter of moments. An error of the hub is retried with backoff by the
// queue.
func unverified(err error) result {
	if errors.Is(err, errStaleCache) {
		return result{unknown: true, requeue: jittered(memberqueue.FirstRetry)}
	}
	return result{unknown: true, hubError: err}
}

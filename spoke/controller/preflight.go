package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// confirm asks the hub's API server, before a child is removed, whether the
// MemberCache is what the cache shows. It may show one that was deleted while another
// of the same name and owner is there since, whose children carry the same mark; or an
// older spec, which does not want a child yet. errBehind says so; the cache's event is
// on the way.
func (m *member) confirm(ctx context.Context, mc *v1alpha1.MemberCache) error {
	ctx, cancel := context.WithTimeout(ctx, hubDeadline)
	defer cancel()
	now := &v1alpha1.MemberCache{}
	err := m.Hub.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(mc), now)
	switch {
	case apierrors.IsNotFound(err):
		return errBehind
	case err != nil:
		return fmt.Errorf("look at MemberCache %s on the hub again: %w", mc.Name, err)
	case now.UID != mc.UID || now.Generation != mc.Generation:
		return errBehind
	}
	return nil
}

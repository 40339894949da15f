package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// synced is ready while the hub's cache is filled. Members are not asked: one
// that is away must not take the manager out of service.
func synced(hub cluster.Cluster) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !hub.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the hub's cache is not filled yet")
		}
		return nil
	}
}

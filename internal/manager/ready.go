package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// cacheSynced returns a check that passes while the cache of the hub is synced. It does
// not check the members: an unreachable one must not make the manager unready.
func cacheSynced(hub cluster.Cluster) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !hub.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache of the hub is not synced yet")
		}
		return nil
	}
}

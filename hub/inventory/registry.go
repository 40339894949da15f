package inventory

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// registry holds the connections that are engaged. It stands in for
// multicluster-runtime's clusters.Clusters (v0.24.1), whose Add leaves a
// goroutine behind that removes whatever is registered under the name when an
// earlier connection has ended: with a member that comes and goes, the new one.
type registry struct {
	mu      sync.RWMutex
	engaged map[multicluster.ClusterName]*connection
	indexes []clusters.Index
}

// Get gives an engaged member, or an error that wraps ErrClusterNotFound.
func (r *registry) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c, ok := r.engaged[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("member %q: %w", name, multicluster.ErrClusterNotFound)
}

// IndexField indexes a field in every member, now and later.
func (r *registry) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.indexes = append(r.indexes, clusters.Index{Object: object, Field: field, Extractor: extract})
	for name, c := range r.engaged {
		if err := c.GetFieldIndexer().IndexField(ctx, object, field, extract); err != nil {
			return fmt.Errorf("index %s of member %q: %w", field, name, err)
		}
	}
	return nil
}

func (r *registry) add(ctx context.Context, name multicluster.ClusterName, c *connection) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, index := range r.indexes {
		if err := c.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Extractor); err != nil {
			return fmt.Errorf("index %s of member %q: %w", index.Field, name, err)
		}
	}
	r.engaged[name] = c
	return nil
}

func (r *registry) remove(name multicluster.ClusterName, c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engaged[name] == c {
		delete(r.engaged, name)
	}
}

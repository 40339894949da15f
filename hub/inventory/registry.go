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

// registry holds the engaged connections by member. It replaces
// multicluster-runtime's clusters.Clusters (v0.24.1), whose Add starts a goroutine that
// removes whatever is registered under the name when the connection ends. For a member
// that is engaged again, that removes the new connection.
type registry struct {
	mu      sync.RWMutex
	engaged map[multicluster.ClusterName]*connection
	indexes []clusters.Index
}

func newRegistry() *registry {
	return &registry{engaged: map[multicluster.ClusterName]*connection{}}
}

func (r *registry) get(name multicluster.ClusterName) (cluster.Cluster, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c, ok := r.engaged[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("member %q: %w", name, multicluster.ErrClusterNotFound)
}

func (r *registry) indexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
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

// add registers a connection and adds the indexes to its cache.
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

// remove drops a connection, unless another one took its name.
func (r *registry) remove(name multicluster.ClusterName, c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engaged[name] == c {
		delete(r.engaged, name)
	}
}

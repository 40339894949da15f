package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// removed remembers the MemberCaches of each CacheCluster whose deletion the API server
// has taken, until the cache shows it: to delete once more changes nothing, and would be
// done at every event that comes before. Losing it costs that. The zero value remembers
// nothing.
type removed struct {
	mu sync.Mutex
	of map[types.UID]map[types.UID]bool
}

// left are those of a CacheCluster that are still to be deleted. What the cache does not
// show as to be removed any more is forgotten.
func (r *removed) left(cc types.UID, remove []*v1alpha1.MemberCache) (left []*v1alpha1.MemberCache) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := map[types.UID]bool{}
	for _, mc := range remove {
		if r.of[cc][mc.UID] {
			taken[mc.UID] = true
			continue
		}
		left = append(left, mc)
	}
	if len(taken) == 0 {
		delete(r.of, cc)
		return left
	}
	r.of[cc] = taken
	return left
}

func (r *removed) note(cc, mc types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.UID]map[types.UID]bool{}
	}
	if r.of[cc] == nil {
		r.of[cc] = map[types.UID]bool{}
	}
	r.of[cc][mc] = true
}

func (r *removed) forget(cc types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, cc)
}

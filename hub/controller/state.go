package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// removed remembers the MemberCaches of each CacheCluster whose deletion the API server
// has taken, with the version that the cache showed then. As long as it shows that one, to
// delete again would change nothing, and every event would bring another such request.
// What is forgotten costs one. The zero value remembers nothing.
type removed struct {
	mu sync.Mutex
	of map[types.UID]map[types.UID]string
}

// take gives those of a CacheCluster that are still to be deleted, of all that are to be
// removed, and forgets what is not among these any more.
func (r *removed) take(cc types.UID, remove []*v1alpha1.MemberCache) (left []*v1alpha1.MemberCache) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[types.UID]string{}
	for _, mc := range remove {
		if version, taken := r.of[cc][mc.UID]; taken && version == mc.ResourceVersion {
			known[mc.UID] = version
			continue
		}
		left = append(left, mc)
	}
	if len(known) == 0 {
		delete(r.of, cc)
		return left
	}
	r.of[cc] = known
	return left
}

func (r *removed) note(cc types.UID, mc *v1alpha1.MemberCache) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.UID]map[types.UID]string{}
	}
	if r.of[cc] == nil {
		r.of[cc] = map[types.UID]string{}
	}
	r.of[cc][mc.UID] = mc.ResourceVersion
}

func (r *removed) forget(cc types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, cc)
}

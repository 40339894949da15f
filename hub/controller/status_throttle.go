package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// progressPause is the least time between two verdicts that differ only in how far
// members have come: a hundred members that start are not a hundred writes.
const progressPause = 2 * time.Second

// pace remembers when each CacheCluster's status was written last. Losing it costs
// at most one write more. The zero value remembers nothing.
type pace struct {
	mu    sync.Mutex
	wrote map[types.UID]time.Time
}

func (p *pace) note(uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote == nil {
		p.wrote = map[types.UID]time.Time{}
	}
	p.wrote[uid] = now
}

func (p *pace) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wrote, uid)
}

// hasty says how long a verdict should wait that comes right after the last one
// and tells of progress only; 0 if it is to be written now.
func (p *pace) hasty(uid types.UID, old, next *v1alpha1.CacheClusterStatus, now time.Time) time.Duration {
	p.mu.Lock()
	wrote, known := p.wrote[uid]
	p.mu.Unlock()
	since := now.Sub(wrote)
	// A clock that was set back must not put off anything for long.
	if !known || since < 0 || since >= progressPause || !progressOnly(old, next) {
		return 0
	}
	return progressPause - since
}

// progressOnly says that two verdicts differ in nothing but counts, texts, and
// members that are Progressing, Ready or Deleting without an error.
func progressOnly(old, next *v1alpha1.CacheClusterStatus) bool {
	if old.ObservedGeneration != next.ObservedGeneration || old.Revision != next.Revision || len(old.Clusters) != len(next.Clusters) ||
		len(old.Conditions) != len(next.Conditions) {
		return false
	}
	for i := range old.Conditions {
		a, b := &old.Conditions[i], &next.Conditions[i]
		if a.Type != b.Type || a.Status != b.Status || a.Reason != b.Reason {
			return false
		}
	}
	for i := range old.Clusters {
		a, b := &old.Clusters[i], &next.Clusters[i]
		if a.Name != b.Name || !moves(a) || !moves(b) || !equality.Semantic.DeepEqual(a.LastDrift, b.LastDrift) ||
			!equality.Semantic.DeepEqual(a.OpenDrifts, b.OpenDrifts) {
			return false
		}
	}
	return true
}

func moves(c *v1alpha1.ClusterStatus) bool {
	return c.Class == "" && slices.Contains([]v1alpha1.MemberState{v1alpha1.MemberProgressing, v1alpha1.MemberReady, v1alpha1.MemberDeleting}, c.State)
}

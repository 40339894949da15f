package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/throttle"
)

// progressPause is the least time between two status writes that differ in progress
// only: a hundred members that start are not a hundred writes. It grows with the
// number of CacheClusters that progress, since in a burst each of them takes longer.
var progressPause = throttle.Pause{Base: 2 * time.Second, PerObject: 100 * time.Millisecond, Max: 10 * time.Second}

// statusThrottle returns how long the next status must wait; 0 if it is to be written
// now. Only a status that carries nothing but progress waits. A status that decides
// something, such as Ready=True, never does.
func (s *states) statusThrottle(cc *v1alpha1.CacheCluster, next *v1alpha1.CacheClusterStatus, now time.Time) time.Duration {
	if !progressOnly(&cc.Status, next) {
		return 0
	}
	written, objects := s.statusPause(cc)
	return progressPause.Remaining(written, objects, now)
}

// progressOnly reports whether two statuses differ in nothing but counts, texts, and
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
		if a.Name != b.Name || !onCourse(a) || !onCourse(b) || !equality.Semantic.DeepEqual(a.LastDrift, b.LastDrift) ||
			!equality.Semantic.DeepEqual(a.OpenDrifts, b.OpenDrifts) {
			return false
		}
	}
	return true
}

// onCourse reports whether a member reaches its goal without anyone acting.
func onCourse(c *v1alpha1.ClusterStatus) bool {
	return c.Class == "" && slices.Contains([]v1alpha1.MemberState{v1alpha1.MemberProgressing, v1alpha1.MemberReady, v1alpha1.MemberDeleting}, c.State)
}

// progressing reports whether a status has members that are Progressing without an error.
func progressing(s *v1alpha1.CacheClusterStatus) bool {
	return slices.ContainsFunc(s.Clusters, func(c v1alpha1.ClusterStatus) bool { return c.State == v1alpha1.MemberProgressing && c.Class == "" })
}

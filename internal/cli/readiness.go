package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// readiness is the state of one generation of a CacheCluster.
type readiness string

const (
	readinessReady       readiness = "ready"
	readinessProgressing readiness = "progressing"
	readinessStalled     readiness = "stalled"
)

// readinessOf returns the readiness of the given generation. A status or condition
// of an older generation is ignored.
func readinessOf(cc *v1alpha1.CacheCluster, generation int64) readiness {
	if cc.Status.ObservedGeneration < generation {
		return readinessProgressing
	}
	isTrue := func(conditionType string) bool {
		c := meta.FindStatusCondition(cc.Status.Conditions, conditionType)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= generation
	}
	switch {
	case isTrue(v1alpha1.ConditionReady):
		return readinessReady
	case isTrue(v1alpha1.ConditionStalled) && !clearsByItself(cc):
		return readinessStalled
	}
	return readinessProgressing
}

// clearsByItself reports whether the obstacles of a stalled CacheCluster end without
// anyone acting. The hub reports such members as Blocked too, since someone can
// end the obstacle sooner.
func clearsByItself(cc *v1alpha1.CacheCluster) bool {
	if meta.IsStatusConditionFalse(cc.Status.Conditions, v1alpha1.ConditionPlaced) {
		return false
	}
	blocked := slices.DeleteFunc(slices.Clone(cc.Status.Clusters), func(m v1alpha1.ClusterStatus) bool { return m.State != v1alpha1.MemberBlocked })
	stays := func(m v1alpha1.ClusterStatus) bool { return !m.SelfResolving }
	return len(blocked) > 0 && !slices.ContainsFunc(blocked, stays)
}

// readyCondition returns the condition Ready of cc, or a substitute before the hub
// manager has set it.
func readyCondition(cc *v1alpha1.CacheCluster) metav1.Condition {
	if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotObserved, Message: "the hub manager has not observed this CacheCluster yet; check that it runs"}
}

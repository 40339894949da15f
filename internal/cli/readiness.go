package cli

import (
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
	case isTrue(v1alpha1.ConditionStalled) && !selfResolving(cc):
		return readinessStalled
	}
	return readinessProgressing
}

// selfResolving reports whether a stalled CacheCluster is blocked only by causes that
// end without anyone acting.
func selfResolving(cc *v1alpha1.CacheCluster) bool {
	if meta.IsStatusConditionFalse(cc.Status.Conditions, v1alpha1.ConditionPlaced) {
		return false
	}
	blocked := 0
	for i := range cc.Status.Clusters {
		m := &cc.Status.Clusters[i]
		if m.State != v1alpha1.MemberBlocked {
			continue
		}
		if !m.SelfResolving {
			return false
		}
		blocked++
	}
	return blocked > 0
}

// readyCondition returns the condition Ready of cc, or a substitute before the hub
// manager has set it.
func readyCondition(cc *v1alpha1.CacheCluster) metav1.Condition {
	if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotObserved, Message: "the hub manager has not observed this CacheCluster yet; check that it runs"}
}

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

// routine are the reasons for not being ready that pass by themselves.
var routine = map[string]bool{v1alpha1.ReasonMembersNotReady: true, v1alpha1.ReasonDeleting: true}

// transitions are the events of a status that was saved: when all members are
// ready, and when something keeps them from it.
func transitions(old, next *v1alpha1.CacheClusterStatus) []events.Event {
	is := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	was := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	switch {
	case is.Status == metav1.ConditionTrue:
		return []events.Event{{Reason: is.Reason, Action: "Summarize", Note: is.Message}}
	case routine[is.Reason]:
		return nil
	default:
		return []events.Event{{Warning: true, Reason: is.Reason, Action: "Summarize", Note: is.Message}}
	}
}

// reference without the resource version, so that repeated events form a series.
func reference(cc *v1alpha1.CacheCluster) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CacheCluster",
		Namespace: cc.Namespace, Name: cc.Name, UID: cc.UID}
}

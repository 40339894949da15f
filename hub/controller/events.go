package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

// progressReasons are the reasons of Ready=False that end without anyone acting.
var progressReasons = map[string]bool{v1alpha1.ReasonMembersNotReady: true, v1alpha1.ReasonDeleting: true}

// readyTransition returns the events of a saved status: one when Ready becomes True,
// and a warning when it becomes False or Unknown for a reason that is no progress.
func readyTransition(old, next *v1alpha1.CacheClusterStatus) []events.Event {
	after := conditions.Get(next.Conditions, v1alpha1.ConditionReady)
	before := conditions.Get(old.Conditions, v1alpha1.ConditionReady)
	if after == nil || before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	switch {
	case after.Status == metav1.ConditionTrue:
		return []events.Event{{Reason: after.Reason, Action: "Summarize", Note: after.Message}}
	case progressReasons[after.Reason]:
		return nil
	default:
		return []events.Event{{Warning: true, Reason: after.Reason, Action: "Summarize", Note: after.Message}}
	}
}

// objectReference returns a reference without the resourceVersion, so that repeated
// events form a series.
func objectReference(cc *v1alpha1.CacheCluster) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CacheCluster",
		Namespace: cc.Namespace, Name: cc.Name, UID: cc.UID}
}

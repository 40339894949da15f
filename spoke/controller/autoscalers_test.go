package controller

import (
	"testing"

	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// The cache of a kind without an informer would never answer.
func TestAutoscalerRanges_DoesNotReadUnwatchedKind(t *testing.T) {
	if found, err := autoscalerRanges(t.Context(), &memberqueue.Engagement{Cluster: staleCluster{}}, memberCache()); found != nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

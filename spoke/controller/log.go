package controller

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Log levels: 0 for transitions, 4 for the details of each reconcile. The logger of a
// reconcile carries member, namespace and name of the MemberCache. The writes to a member
// are logged by spoke/apply.

// logTransition logs a saved status that changed state or reason.
func logTransition(ctx context.Context, old, next *v1alpha1.MemberCacheStatus) {
	logger := log.FromContext(ctx)
	if old.State == next.State && old.Reason == next.Reason {
		logger.V(4).Info("Status updated", "state", next.State, "readyReplicas", next.ReadyReplicas, "replicas", next.Replicas)
		return
	}
	logger.Info("State changed", "from", old.State, "to", next.State, "reason", next.Reason, "class", next.Class, "message", next.Message, "revision", next.Revision)
}

// logConflicts logs the children whose conflict began or ended.
func logConflicts(ctx context.Context, before, after []string) {
	for _, child := range after {
		if !slices.Contains(before, child) {
			log.FromContext(ctx).Info("Conflict with another controller began, corrections are throttled", "child", child)
		}
	}
	for _, child := range before {
		if !slices.Contains(after, child) {
			log.FromContext(ctx).Info("Conflict with another controller ended", "child", child)
		}
	}
}

// logRetry logs a failure that is retried.
func logRetry(ctx context.Context, r *result, wait time.Duration) {
	if r.failure != nil && wait > 0 {
		log.FromContext(ctx).V(4).Info("Retrying with backoff", "after", wait, "attempt", r.attempt.count, "class", r.failure.Class,
			"reason", r.failure.Reason, "message", r.failure.Message)
	}
}

// logDeferred logs a report that is deferred.
func logDeferred(ctx context.Context, wait time.Duration) {
	log.FromContext(ctx).V(4).Info("Report deferred", "for", wait)
}

// logReleased logs the end of a deletion.
func logReleased(ctx context.Context) {
	log.FromContext(ctx).Info("Children removed, finalizer removed")
}

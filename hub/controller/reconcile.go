package controller

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleCacheRetry is the requeue interval while the cache of the hub is stale. The
// event that refreshes the cache usually triggers the next reconcile before that.
const staleCacheRetry = 100 * time.Millisecond

// errStaleCache reports that the cache of the hub shows an older state than the API
// server. It is no failure: the reconcile is repeated.
var errStaleCache = errors.New("the cache of the hub is stale")

// Reconcile runs the stages for one CacheCluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	snapshot, err := r.read(ctx, request.NamespacedName)
	if err != nil || snapshot == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan := decide(snapshot)
	if err := r.preflight(ctx, snapshot, &plan); err != nil {
		return requeue(err)
	}
	applyErr := r.apply(ctx, snapshot, &plan)
	if done, err := r.removeFinalizer(ctx, snapshot, &plan); done || err != nil {
		return requeue(err)
	}
	// The status is written even if apply failed: it reports what was done.
	wait, err := r.publish(ctx, snapshot, &plan)
	if err := errors.Join(applyErr, err); err != nil {
		return requeue(err)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// requeue returns the result for an error. A conflict and a stale cache are repeated
// soon and without backoff; every other error is retried with backoff.
func requeue(err error) (ctrl.Result, error) {
	if failures := hardFailures(err); failures != nil {
		return ctrl.Result{}, failures
	}
	if err != nil {
		return ctrl.Result{RequeueAfter: staleCacheRetry}, nil
	}
	return ctrl.Result{}, nil
}

// hardFailures returns err without the conflicts and stale caches that it joins, or
// nil where nothing remains.
func hardFailures(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var hard []error
		for _, e := range joined.Unwrap() {
			if e = hardFailures(e); e != nil {
				hard = append(hard, e)
			}
		}
		return errors.Join(hard...)
	}
	if apierrors.IsConflict(err) || errors.Is(err, errStaleCache) {
		return nil
	}
	return err
}

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// The example: two replicas in every member.
const (
	example   = "examples/cache-cluster.yaml"
	namespace = corev1.NamespaceDefault
	name      = "cache-cluster"
	replicas  = 2
)

var key = client.ObjectKey{Namespace: namespace, Name: name}

// patience is how long anything may take before the measurement gives up.
const patience = 2 * time.Minute

// measureApply times the command of the user, from its start to its end, which is
// when every member is ready. The last cache stays.
func (f *fleet) measureApply(ctx context.Context, o options, r *report) error {
	var took []time.Duration
	for i := range o.applies {
		if err := f.remove(ctx); err != nil {
			return err
		}
		step("apply %d of %d", i+1, o.applies)
		start := time.Now()
		if err := cli(ctx, "apply", example, "--lab", o.lab); err != nil {
			return err
		}
		took = append(took, time.Since(start))
	}
	r.add("apply to all Ready, median", seconds, quantile(took, .5).Seconds(), 10)
	r.add("apply to all Ready, longest", seconds, quantile(took, 1).Seconds(), 10)
	return nil
}

func (f *fleet) remove(ctx context.Context) error {
	hub := f.clusters[0]
	err := hub.Delete(ctx, &v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, key, &v1alpha1.CacheCluster{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// measureDrift changes replicas in one member after the other and times, with a
// watch like anybody's, how long the wrong object could be seen.
func (f *fleet) measureDrift(ctx context.Context, o options, r *report) error {
	var seen, sent []time.Duration
	for i := range o.trials {
		m := f.members()[i%len(f.members())]
		if err := m.atRest(ctx); err != nil {
			return fmt.Errorf("%s: wait until the cache is at rest: %w", m.name, err)
		}
		event, write, err := m.drift(ctx)
		if err != nil {
			return fmt.Errorf("%s: drift %d: %w", m.name, i+1, err)
		}
		seen, sent = append(seen, event), append(sent, write)
		if (i+1)%10 == 0 {
			step("drift %d of %d", i+1, o.trials)
		}
	}
	r.add("drift event to corrected object seen, p50", milliseconds, ms(quantile(seen, .5)), 500)
	r.add("drift event to corrected object seen, p90", milliseconds, ms(quantile(seen, .9)), 0)
	r.add("drift event to corrected object seen, p99", milliseconds, ms(quantile(seen, .99)), 0)
	r.add("drifting write sent to corrected object seen, p50", milliseconds, ms(quantile(sent, .5)), 0)
	r.add("drifting write sent to corrected object seen, p99", milliseconds, ms(quantile(sent, .99)), 0)
	return nil
}

// atRest waits until nobody has anything to do about the StatefulSet.
func (c *cluster) atRest(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var set appsv1.StatefulSet
		if err := c.Get(ctx, key, &set); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		s := set.Status
		return *set.Spec.Replicas == replicas && s.ObservedGeneration == set.Generation &&
			s.Replicas == replicas && s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas, nil
	})
}

// drift makes one and gives the time in which it could be seen, and the time from
// before the write.
func (c *cluster) drift(ctx context.Context) (fromEvent, fromWrite time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := c.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return 0, 0, err
	}
	defer w.Stop()
	// The watch is there once it has told of the object as it is.
	if _, err := await(ctx, w, replicas); err != nil {
		return 0, 0, err
	}
	const wrong = replicas + 1
	start := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, wrong)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("bench")); err != nil {
		return 0, 0, err
	}
	event, err := await(ctx, w, wrong)
	if err != nil {
		return 0, 0, err
	}
	right, err := await(ctx, w, replicas)
	return right.Sub(event), right.Sub(start), err
}

// await gives the time at which the watch told of that many replicas.
func await(ctx context.Context, w watch.Interface, wanted int32) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for replicas %d: %w", wanted, ctx.Err())
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return time.Time{}, fmt.Errorf("waiting for replicas %d: the watch ended: %v", wanted, e.Object)
			}
			if set, ok := e.Object.(*appsv1.StatefulSet); ok && *set.Spec.Replicas == wanted {
				return time.Now(), nil
			}
		}
	}
}

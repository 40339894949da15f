package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// patience is how long anything may take before the measurement gives up.
const patience = 3 * time.Minute

// observe watches, like anybody could, what the manager makes in the members and
// says on the hub, and notes when it was seen.
func (f *fleet) observe(ctx context.Context) error {
	for _, c := range f.members() {
		for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.ServiceList{}} {
			if err := f.follow(ctx, c, list); err != nil {
				return err
			}
		}
	}
	for _, list := range []client.ObjectList{&v1alpha1.CacheClusterList{}, &v1alpha1.MemberCacheList{}, &clusterinventory.ClusterProfileList{}, &corev1.EventList{}} {
		if err := f.follow(ctx, f.hub(), list); err != nil {
			return err
		}
	}
	return nil
}

// follow one kind in one cluster until ctx ends, beyond the end of a watch.
func (f *fleet) follow(ctx context.Context, c *cluster, list client.ObjectList) error {
	start := func() (watch.Interface, error) { return c.Watch(ctx, list) }
	w, err := start()
	if err != nil {
		return fmt.Errorf("%s: watch %T: %w", c.name, list, err)
	}
	go func() {
		for {
			for e := range w.ResultChan() {
				if object, ok := e.Object.(client.Object); ok {
					f.marks.note(c.name, object.GetName(), time.Now(), facts(object, e.Type == watch.Deleted))
				}
			}
			for w = nil; w == nil; w, _ = start() {
				if pause(ctx, 100*time.Millisecond) != nil {
					return
				}
			}
		}
	}()
	return nil
}

func facts(object client.Object, deleted bool) map[fact]bool {
	switch object := object.(type) {
	case *appsv1.StatefulSet:
		return map[fact]bool{present: !deleted, ready: !deleted && atRest(object)}
	case *policyv1.PodDisruptionBudget:
		return map[fact]bool{covered: !deleted}
	case *v1alpha1.CacheCluster:
		status := metav1.ConditionStatus("")
		if c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.ObservedGeneration == object.Generation {
			status = c.Status
		}
		return map[fact]bool{ready: !deleted && status == metav1.ConditionTrue, unknown: !deleted && status == metav1.ConditionUnknown, gone: deleted}
	}
	return nil
}

// settle waits until nothing was seen to change for a while.
func (f *fleet) settle(ctx context.Context, quiet time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for {
		last := f.marks.lastEvent(names(f.clusters)...)
		if last.Before(began) {
			last = began
		}
		left := quiet - time.Since(last)
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, left); err != nil {
			return fmt.Errorf("waiting for %s without a change: %w", quiet, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

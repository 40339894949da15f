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

// patience is how long the run waits without progress before it fails.
const patience = 3 * time.Minute

// observe watches the manager's objects in the members and on the hub and records
// their milestones.
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

// follow watches one kind in one cluster until ctx ends. It starts the watch again
// when the API server ends it.
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
					f.timeline.record(c.name, object.GetName(), time.Now(), factsOf(object, e.Type == watch.Deleted))
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

func factsOf(object client.Object, isDeleted bool) map[fact]bool {
	switch object := object.(type) {
	case *appsv1.StatefulSet:
		return map[fact]bool{present: !isDeleted, ready: !isDeleted && hasSettled(object)}
	case *policyv1.PodDisruptionBudget:
		return map[fact]bool{complete: !isDeleted}
	case *v1alpha1.MemberCache:
		return map[fact]bool{ready: !isDeleted && readiness(object.Status.Conditions, object.Generation) == metav1.ConditionTrue}
	case *v1alpha1.CacheCluster:
		status := readiness(object.Status.Conditions, object.Generation)
		return map[fact]bool{ready: !isDeleted && status == metav1.ConditionTrue, unknown: !isDeleted && status == metav1.ConditionUnknown, deleted: isDeleted}
	}
	return nil
}

// readiness returns the status of Ready, or "" where the condition is about another
// generation.
func readiness(conditions []metav1.Condition, generation int64) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil && c.ObservedGeneration == generation {
		return c.Status
	}
	return ""
}

// settle waits until no watch has shown a change for the duration quiet.
func (f *fleet) settle(ctx context.Context, quiet time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	for {
		last := f.timeline.lastEvent(names(f.clusters)...)
		if last.Before(start) {
			last = start
		}
		remaining := quiet - time.Since(last)
		if remaining <= 0 {
			return nil
		}
		if err := pause(ctx, remaining); err != nil {
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

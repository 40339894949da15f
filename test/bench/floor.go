package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// floorCommand is the first argument of the floor's process: the least program that
// corrects one field, with one watch and one patch. Like the manager, it has a process
// of its own.
const floorCommand = "floor"

// Lines that the floor's process prints.
const (
	floorWatches = "watching"
	floorPatched = "patched"
)

// runFloor keeps the replicas of one StatefulSet in each of the contexts.
func runFloor(ctx context.Context, kubeconfig, name string, contexts []string) error {
	failed := make(chan error)
	for _, member := range contexts {
		config, err := clientConfig(kubeconfig, member)
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		go func() { failed <- keepReplicas(ctx, c, name) }()
	}
	return <-failed
}

func keepReplicas(ctx context.Context, c kubernetes.Interface, name string) error {
	sets := c.AppsV1().StatefulSets(namespace)
	right := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	w, err := sets.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println(floorWatches)
	for e := range w.ResultChan() {
		set, ok := e.Object.(*appsv1.StatefulSet)
		if !ok || e.Type == watch.Deleted || *set.Spec.Replicas == replicas {
			continue
		}
		if _, err := sets.Patch(ctx, name, types.MergePatchType, right, metav1.PatchOptions{FieldManager: floorCommand}); err != nil {
			return err
		}
		fmt.Println(floorPatched)
	}
	return errors.New("the floor's watch ended")
}

// floor is the floor's process.
type floor struct {
	patched atomic.Int64
	stop    func() error
}

// startFloor copies a cache's children in every member and starts the floor for the
// copies.
func (f *fleet) startFloor(ctx context.Context, cache, name string) (*floor, error) {
	for _, c := range f.members() {
		if err := f.copyCache(ctx, c, cache, name); err != nil {
			return nil, fmt.Errorf("%s: create %s: %w", c.name, name, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{floorCommand, f.lab.Kubeconfig(), name}, names(f.members())...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	fl := &floor{}
	lines := bufio.NewScanner(out)
	for range f.members() {
		if !lines.Scan() {
			return nil, errors.Join(errors.New("the floor exited before it watched every member"), cmd.Wait())
		}
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for lines.Scan() {
			fl.patched.Add(1)
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	fl.stop = func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		<-finished
		_ = cmd.Wait()
		return forEach(context.WithoutCancel(ctx), f.members(), func(ctx context.Context, c *cluster) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return deleteCopies(ctx, c, client.MatchingLabels{copyLabel: name})
		})
	}
	return fl, nil
}

// copyCache copies all children of a cache, so that the member's own controllers do the
// same work for a drift of either StatefulSet: each pod changes the endpoints of its
// Service and the status of its PodDisruptionBudget.
func (f *fleet) copyCache(ctx context.Context, c *cluster, cache, name string) error {
	children, err := f.renderChildren(ctx, c, cache)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := applyCopy(ctx, c, child.Intent, cache, name); err != nil {
			return err
		}
	}
	return nil
}

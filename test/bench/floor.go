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

// floorCommand is the first argument of a process that is nothing but the floor:
// what anybody would write who watches one object and patches it back. It stands
// beside the manager in a process of its own, as the manager does.
const floorCommand = "floor"

// Lines that the floor's process prints.
const (
	floorWatches = "watching"
	floorPatched = "patched"
)

// runFloor holds one StatefulSet at its replicas in each of the contexts.
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
		go func() { failed <- hold(ctx, c, name) }()
	}
	return <-failed
}

// hold is the floor's loop.
func hold(ctx context.Context, c kubernetes.Interface, name string) error {
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

// floor is that process, seen from the bench.
type floor struct {
	patched atomic.Int64
	stop    func() error
}

// startFloor gives every member a twin of a cache's children that nobody but the floor
// looks after, and starts it.
func (f *fleet) startFloor(ctx context.Context, cache, twin string) (*floor, error) {
	for _, c := range f.members() {
		if err := f.twin(ctx, c, cache, twin); err != nil {
			return nil, fmt.Errorf("%s: make %s: %w", c.name, twin, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{floorCommand, f.lab.Kubeconfig(), twin}, names(f.members())...)...)
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
			return nil, errors.Join(errors.New("the floor does not watch"), cmd.Wait())
		}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			fl.patched.Add(1)
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	fl.stop = func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		<-read
		_ = cmd.Wait()
		return each(context.WithoutCancel(ctx), f.members(), func(ctx context.Context, c *cluster) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return removeCopies(ctx, c, client.MatchingLabels{copyLabel: twin})
		})
	}
	return fl, nil
}

// twin makes a copy of all children of a cache: the member's own controllers then have
// the same work with a drift of the one StatefulSet and of the other. Each pod that comes
// and goes with it changes the endpoints of its Service and the status of its budget.
func (f *fleet) twin(ctx context.Context, c *cluster, cache, twin string) error {
	children, err := f.render(ctx, c, cache)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := applyCopy(ctx, c, child.Intent, cache, twin); err != nil {
			return err
		}
	}
	return nil
}

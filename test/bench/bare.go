package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// bareWorkers is the number of caches that the bare client creates at the same time in
// each member: as many as the manager has workers there.
const bareWorkers = 16

// benchGroup replaces the API's group in the labels and annotations of the copies, so
// that the manager ignores them.
const benchGroup = "bench.reconcile-lab.io/"

// bareClient creates the manager's children in the members and does nothing else: it
// has no objects on the hub, no preflight and no status.
type bareClient struct {
	*fleet
	// model is the cache whose children are copied.
	model string
	// children of each member, the StatefulSet first.
	children map[string][]unstructured.Unstructured
}

func (f *fleet) newBareClient(ctx context.Context, model string) (*bareClient, error) {
	b := &bareClient{fleet: f, model: model, children: map[string][]unstructured.Unstructured{}}
	for _, c := range f.members() {
		rendered, err := f.renderChildren(ctx, c, model)
		if err != nil {
			return nil, err
		}
		for _, child := range rendered {
			position := len(b.children[c.name])
			if child.Intent.GroupVersionKind() == children.StatefulSetKind {
				position = 0
			}
			b.children[c.name] = slices.Insert(b.children[c.name], position, *child.Intent)
		}
	}
	return b, nil
}

// renderChildren renders a cache's children for a member, as the manager does.
func (f *fleet) renderChildren(ctx context.Context, c *cluster, cache string) ([]render.Child, error) {
	var mc v1alpha1.MemberCache
	if err := f.hub().Get(ctx, client.ObjectKey{Namespace: namespace, Name: memberCacheName(cache, c)}, &mc); err != nil {
		return nil, err
	}
	rendered, problems := render.Render(&mc)
	if len(problems) > 0 {
		return nil, fmt.Errorf("render %s for %s: %v", cache, c.name, problems)
	}
	return rendered, nil
}

// applyCopy applies a child under another name and with other labels of the same
// length. The API server thus has the same work, down to the record of field owners.
func applyCopy(ctx context.Context, c *cluster, child *unstructured.Unstructured, name, newName string) error {
	raw, err := child.MarshalJSON()
	if err != nil {
		return err
	}
	raw = bytes.ReplaceAll(raw, []byte(name), []byte(newName))
	raw = bytes.ReplaceAll(raw, []byte(v1alpha1.GroupVersion.Group+"/"), []byte(benchGroup))
	var renamed unstructured.Unstructured
	if err := json.Unmarshal(raw, &renamed); err != nil {
		return err
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&renamed), client.FieldOwner(v1alpha1.GroupVersion.Group), client.ForceOwnership)
}

// create creates a copy in one member: the StatefulSet, then all others at the same
// time, as the manager does.
func (b *bareClient) create(ctx context.Context, c *cluster, name string) error {
	children := b.children[c.name]
	if err := applyCopy(ctx, c, &children[0], b.model, name); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range children[1:] {
		group.Go(func() error { return applyCopy(ctx, c, &children[1+i], b.model, name) })
	}
	return group.Wait()
}

// remove deletes all copies and waits until their pods are deleted.
func (b *bareClient) remove(ctx context.Context, copies ...string) error {
	err := forEach(ctx, b.members(), func(ctx context.Context, c *cluster) error {
		if err := deleteCopies(ctx, c, client.HasLabels{copyLabel}); err != nil {
			return err
		}
		return awaitNoPods(ctx, c)
	})
	for _, name := range copies {
		b.timeline.forget(name)
	}
	return err
}

func awaitNoPods(ctx context.Context, c *cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{copyLabel}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %d pods of the copies to be deleted: %w", len(pods.Items), err)
		}
	}
}

// deleteCopies deletes the copies with the label in one member.
func deleteCopies(ctx context.Context, c *cluster, label client.DeleteAllOfOption) error {
	for _, kind := range []client.Object{&appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &corev1.Service{}} {
		if err := c.DeleteAllOf(ctx, kind, client.InNamespace(namespace), label); err != nil {
			return err
		}
	}
	return nil
}

// copyLabel is a label of every copy and its pods.
var copyLabel = benchGroup + v1alpha1.LabelCacheCluster[len(v1alpha1.GroupVersion.Group+"/"):]

// measureBare creates copies of a cache's children one by one, and then as many at once
// as the stage createAll creates caches.
func (f *fleet) measureBare(ctx context.Context) error {
	model := cacheName("model", 0)
	if _, err := f.create(ctx, model); err != nil {
		return err
	}
	b, err := f.newBareClient(ctx, model)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, model); err != nil {
		return err
	}
	if err := b.measureOneByOne(ctx); err != nil {
		return err
	}
	return b.measureAtOnce(ctx)
}

func (b *bareClient) measureOneByOne(ctx context.Context) error {
	var all []time.Duration
	for len(all) < b.trials {
		if err := b.settle(ctx, quietTime); err != nil {
			return err
		}
		var copies []string
		for range min(batch, b.trials-len(all)) {
			name := cacheName("alone", len(all))
			copies = append(copies, name)
			start := time.Now()
			if err := forEach(ctx, b.members(), func(ctx context.Context, c *cluster) error { return b.create(ctx, c, name) }); err != nil {
				return err
			}
			last, err := b.timeline.await(ctx, milestonesIn(b.members(), name, present)...)
			if err != nil {
				return err
			}
			all = append(all, last.Sub(start))
			// As in the stage create, the next copy must not compete with the pods of this one.
			if _, err := b.timeline.await(ctx, milestonesIn(b.members(), name, ready)...); err != nil {
				return err
			}
		}
		if err := b.remove(ctx, copies...); err != nil {
			return err
		}
		logStep("create by the bare client %d of %d", len(all), b.trials)
	}
	b.report.BareCreate = ptr.To(latencies(all))
	return nil
}

func (b *bareClient) measureAtOnce(ctx context.Context) error {
	if err := b.settle(ctx, quietTime); err != nil {
		return err
	}
	logStep("creating %d at once by the bare client", b.caches)
	copies := cacheNames("copy", b.caches)
	start := time.Now()
	err := forEach(ctx, b.members(), func(ctx context.Context, c *cluster) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(bareWorkers)
		for _, name := range copies {
			group.Go(func() error { return b.create(ctx, c, name) })
		}
		return group.Wait()
	})
	if err != nil {
		return err
	}
	var presents []time.Duration
	for _, name := range copies {
		last, err := b.timeline.await(ctx, milestonesIn(b.members(), name, present)...)
		if err != nil {
			return err
		}
		presents = append(presents, last.Sub(start))
	}
	b.report.BareCreateAll = &presence{P50: ms(quantile(presents, .5)), Last: ms(quantile(presents, 1))}
	return b.remove(ctx, copies...)
}

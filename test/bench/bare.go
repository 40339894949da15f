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
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// atATime is how many caches the bare creates have under way in each member, as many as
// the manager has workers there.
const atATime = 16

// benchGroup stands for the API's group in the labels and annotations of what the bench
// makes, which nobody looks after.
const benchGroup = "bench.reconcile-lab.io/"

// bare creates in the members what the manager creates there, and nothing else: no object
// on the hub, no rehearsal, no status.
type bare struct {
	*fleet
	// model is the cache whose children are copied; those of each member have the
	// StatefulSet first.
	model    string
	children map[string][]unstructured.Unstructured
}

// copyChildren renders the children of a cache that is there.
func (f *fleet) copyChildren(ctx context.Context, cache string) (*bare, error) {
	b := &bare{fleet: f, model: cache, children: map[string][]unstructured.Unstructured{}}
	for _, c := range f.members() {
		children, err := f.render(ctx, c, cache)
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			at := len(b.children[c.name])
			if child.Intent.GroupVersionKind() == render.StatefulSetKind {
				at = 0
			}
			b.children[c.name] = slices.Insert(b.children[c.name], at, *child.Intent)
		}
	}
	return b, nil
}

// render what a member is to hold of a cache.
func (f *fleet) render(ctx context.Context, c *cluster, cache string) ([]render.Child, error) {
	var mc v1alpha1.MemberCache
	if err := f.hub().Get(ctx, client.ObjectKey{Namespace: namespace, Name: cache + "." + c.name}, &mc); err != nil {
		return nil, err
	}
	children, problems := render.Render(&mc)
	if len(problems) > 0 {
		return nil, fmt.Errorf("render %s for %s: %v", cache, c.name, problems)
	}
	return children, nil
}

// applyCopy applies what the manager applies, under another name and other labels of
// the same length: the API server has the same work with it, down to the record of
// who owns which field.
func applyCopy(ctx context.Context, c *cluster, child *unstructured.Unstructured, name, other string) error {
	raw, err := child.MarshalJSON()
	if err != nil {
		return err
	}
	raw = bytes.ReplaceAll(raw, []byte(name), []byte(other))
	raw = bytes.ReplaceAll(raw, []byte(v1alpha1.GroupVersion.Group+"/"), []byte(benchGroup))
	var renamed unstructured.Unstructured
	if err := json.Unmarshal(raw, &renamed); err != nil {
		return err
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&renamed), client.FieldOwner(v1alpha1.GroupVersion.Group), client.ForceOwnership)
}

// create a copy in one member: the StatefulSet, and then the others side by side, as the
// manager does.
func (b *bare) create(ctx context.Context, c *cluster, name string) error {
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

// remove all copies, and wait until their pods are gone.
func (b *bare) remove(ctx context.Context, copies ...string) error {
	err := each(ctx, b.members(), func(ctx context.Context, c *cluster) error {
		if err := removeCopies(ctx, c, client.HasLabels{copyLabel}); err != nil {
			return err
		}
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
				return fmt.Errorf("%d pods of the copies are still there: %w", len(pods.Items), err)
			}
		}
	})
	for _, name := range copies {
		b.marks.forget(name)
	}
	return err
}

// removeCopies of one member that are so labelled.
func removeCopies(ctx context.Context, c *cluster, labelled client.DeleteAllOfOption) error {
	for _, kind := range []client.Object{&appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &corev1.Service{}} {
		if err := c.DeleteAllOf(ctx, kind, client.InNamespace(namespace), labelled); err != nil {
			return err
		}
	}
	return nil
}

// copyLabel is on every copy and its pods.
var copyLabel = benchGroup + v1alpha1.LabelCacheCluster[len(v1alpha1.GroupVersion.Group+"/"):]

// measureBare makes copies of a cache's children one after the other, and then as many at
// once as there will be caches.
func (f *fleet) measureBare(ctx context.Context) error {
	model := cacheName("model", 0)
	if _, err := f.create(ctx, model); err != nil {
		return err
	}
	b, err := f.copyChildren(ctx, model)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, model); err != nil {
		return err
	}
	if err := b.oneByOne(ctx); err != nil {
		return err
	}
	return b.together(ctx)
}

func (b *bare) oneByOne(ctx context.Context) error {
	var all []time.Duration
	for len(all) < b.trials {
		if err := b.settle(ctx, quietTime); err != nil {
			return err
		}
		var copies []string
		for range min(inARow, b.trials-len(all)) {
			name := cacheName("alone", len(all))
			copies = append(copies, name)
			start := time.Now()
			if err := each(ctx, b.members(), func(ctx context.Context, c *cluster) error { return b.create(ctx, c, name) }); err != nil {
				return err
			}
			at, err := b.marks.await(ctx, in(b.members(), name, present)...)
			if err != nil {
				return err
			}
			all = append(all, at.Sub(start))
			// As where the manager creates: the next one does not compete with this one's pods.
			if _, err := b.marks.await(ctx, in(b.members(), name, ready)...); err != nil {
				return err
			}
		}
		if err := b.remove(ctx, copies...); err != nil {
			return err
		}
		step("create without a hub %d of %d", len(all), b.trials)
	}
	b.report.BareCreate = ptr.To(latencies(all))
	return nil
}

func (b *bare) together(ctx context.Context) error {
	if err := b.settle(ctx, quietTime); err != nil {
		return err
	}
	step("creating %d at once without a hub", b.caches)
	var copies []string
	for i := range b.caches {
		copies = append(copies, cacheName("copy", i))
	}
	start := time.Now()
	err := each(ctx, b.members(), func(ctx context.Context, c *cluster) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atATime)
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
		at, err := b.marks.await(ctx, in(b.members(), name, present)...)
		if err != nil {
			return err
		}
		presents = append(presents, at.Sub(start))
	}
	b.report.BareCreateAll = &presence{P50: ms(quantile(presents, .5)), Last: ms(quantile(presents, 1))}
	return b.remove(ctx, copies...)
}

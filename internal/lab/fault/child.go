package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/field"
)

// defaultManager is the field manager in whose name faults write.
const defaultManager = "reconcile-lab-inject"

// findChild completes the request and reads the child that it means.
func (i *Injector) findChild(ctx context.Context, f *Fault) error {
	r := &f.Request
	if r.Manager == "" {
		r.Manager = defaultManager
	}
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	if err := findCache(ctx, hub, r); err != nil {
		return err
	}
	held, err := findMemberCache(ctx, hub, r)
	if err != nil {
		return err
	}
	entry, err := choose(held.Status.Inventory, r.Kind)
	if err != nil {
		return badInput("%s/%s in %s: %w", r.Namespace, r.Cache, r.Member, err)
	}
	member, err := i.client(r.Member)
	if err != nil {
		return err
	}
	mapping, err := member.RESTMapper().RESTMapping(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	if err != nil {
		return fmt.Errorf("ask %s: %w", r.Member, err)
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: entry.Name}, before); err != nil {
		return fmt.Errorf("read %s/%s in %s: %w", entry.Kind, entry.Name, r.Member, err)
	}
	f.Object = &object{Before: before}
	return nil
}

func findCache(ctx context.Context, hub client.Client, r *Request) error {
	var caches v1alpha1.CacheClusterList
	if err := hub.List(ctx, &caches, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	var there []string
	for _, cc := range caches.Items {
		there = append(there, cc.Name)
	}
	switch {
	case len(there) == 0:
		return badInput("there is no CacheCluster in namespace %s: apply one first, such as examples/cache-cluster.yaml, or name its --namespace", r.Namespace)
	case r.Cache == "" && len(there) == 1:
		r.Cache = there[0]
	case r.Cache == "":
		return badInput("name the CacheCluster: one of %s", strings.Join(there, ", "))
	case !slices.Contains(there, r.Cache):
		return badInput("there is no CacheCluster %s in namespace %s: choose from %s", r.Cache, r.Namespace, strings.Join(there, ", "))
	}
	return nil
}

// findMemberCache is the cache's part in the member, or in the first one.
func findMemberCache(ctx context.Context, hub client.Client, r *Request) (*v1alpha1.MemberCache, error) {
	if r.Member != "" {
		mc := &v1alpha1.MemberCache{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Cache + "." + r.Member}, mc)
		if apierrors.IsNotFound(err) {
			return nil, badInput("CacheCluster %s/%s is not placed in %s: see reconcile-lab status %s", r.Namespace, r.Cache, r.Member, r.Cache)
		}
		return mc, err
	}
	var all v1alpha1.MemberCacheList
	if err := hub.List(ctx, &all, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	for k := range all.Items {
		mc := &all.Items[k]
		if mc.Name == r.Cache+"."+mc.Spec.Cluster && len(mc.Status.Inventory) > 0 {
			r.Member = mc.Spec.Cluster
			return mc, nil
		}
	}
	return nil, badInput("CacheCluster %s/%s has no children in any member yet: see reconcile-lab status %s", r.Namespace, r.Cache, r.Cache)
}

// choose the child that KIND or KIND/NAME means; the StatefulSet if empty.
func choose(children []v1alpha1.InventoryEntry, kind string) (v1alpha1.InventoryEntry, error) {
	if kind == "" {
		kind = "StatefulSet"
	}
	kind, name, _ := strings.Cut(kind, "/")
	var there []string
	for _, c := range children {
		if strings.EqualFold(c.Kind, kind) && (name == "" || c.Name == name) {
			return c, nil
		}
		there = append(there, c.Kind+"/"+c.Name)
	}
	if len(there) == 0 {
		return v1alpha1.InventoryEntry{}, fmt.Errorf("there are no children yet")
	}
	return v1alpha1.InventoryEntry{}, fmt.Errorf("there is no such child: choose --kind from %s", strings.Join(there, ", "))
}

// findField completes the request's field and value.
func (i *Injector) findField(ctx context.Context, f *Fault) error {
	if err := i.findChild(ctx, f); err != nil {
		return err
	}
	r := &f.Request
	if r.Field == "" {
		if r.Field = "spec.replicas"; f.Object.Before.GetKind() != "StatefulSet" {
			r.Field = "metadata.labels." + v1alpha1.LabelInstance
		}
	}
	at, err := field.Find(f.Object.Before.Object, r.Field)
	if err != nil {
		return badInput("%s: %w", f.Object, err)
	}
	old, had := at.Value()
	var value any
	switch {
	case r.Value != "":
		value, err = field.Parse(r.Value, old)
	case had:
		value, err = field.Another(old)
	default:
		return badInput("%s has no %s: give its --value", f.Object, r.Field)
	}
	if err != nil {
		return badInput("%s %s: %w", f.Object, r.Field, err)
	}
	f.Object.Field = r.Field
	if f.Object.Set, err = json.Marshal(value); err != nil {
		return err
	}
	before := "nothing"
	if had {
		before = fmt.Sprint(old)
	}
	f.What = fmt.Sprintf("%s %s %s: %s → %v, by %s", r.Member, f.Object, r.Field, before, value, r.Manager)
	return nil
}

// drift changes one field once.
type drift struct{}

func (drift) prepare(ctx context.Context, i *Injector, f *Fault) error {
	return i.findField(ctx, f)
}

func (drift) do(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	changed, err := f.Object.change(ctx, member, f.Request.Manager)
	if err == nil && !changed {
		err = badInput("%s %s has that value already", f.Object, f.Object.Field)
	}
	return err
}

func (drift) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	return f.Object.changeBack(ctx, member, f.Request.Manager)
}

// deletion deletes a child, with what belongs to it.
type deletion struct{}

func (deletion) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.findChild(ctx, f); err != nil {
		return err
	}
	f.What = fmt.Sprintf("%s %s is deleted", f.Request.Member, f.Object)
	return nil
}

func (deletion) do(ctx context.Context, i *Injector, f *Fault) error {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(member.Delete(ctx, f.Object.Before.DeepCopy(), client.PropagationPolicy("Background")))
}

func (deletion) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	member, err := i.client(f.Request.Member)
	if err != nil {
		return "", err
	}
	return f.Object.createAgain(ctx, member, f.Request.Manager)
}

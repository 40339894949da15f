package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

// defaultManager is the field manager of faults.
const defaultManager = "reconcile-lab-inject"

// findChild adds defaults to the request and reads the child that it selects.
func (i *Injector) findChild(ctx context.Context, f *Fault) error {
	r := &f.Request
	r.Manager = cmp.Or(r.Manager, defaultManager)
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	if err := findCache(ctx, hub, r); err != nil {
		return err
	}
	memberCache, err := findMemberCache(ctx, hub, r)
	if err != nil {
		return err
	}
	entry, err := selectChild(memberCache.Status.Inventory, r.Kind)
	if err != nil {
		return badInput("%s/%s in %s: %w", r.Namespace, r.Cache, r.Member, err)
	}
	member, err := i.client(r.Member)
	if err != nil {
		return err
	}
	mapping, err := member.RESTMapper().RESTMapping(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	if err != nil {
		return fmt.Errorf("discover %s in %s: %w", entry.Kind, r.Member, err)
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: entry.Name}, before); err != nil {
		return fmt.Errorf("read %s/%s in %s: %w", entry.Kind, entry.Name, r.Member, err)
	}
	f.Object = &object{Before: before}
	return nil
}

// findCache sets the CacheCluster of the request to the only one in the namespace, if the
// request names none.
func findCache(ctx context.Context, hub client.Client, r *Request) error {
	var caches v1alpha1.CacheClusterList
	if err := hub.List(ctx, &caches, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("list CacheClusters on the hub: %w", err)
	}
	var names []string
	for _, cc := range caches.Items {
		names = append(names, cc.Name)
	}
	switch {
	case len(names) == 0:
		return badInput("no CacheCluster in namespace %s; apply one, for example examples/cache-cluster.yaml, or set --namespace", r.Namespace)
	case r.Cache == "" && len(names) == 1:
		r.Cache = names[0]
	case r.Cache == "":
		return badInput("%s: CACHE is missing; use one of: %s", r.Fault, strings.Join(names, ", "))
	case !slices.Contains(names, r.Cache):
		return badInput("CacheCluster: %q: not found in namespace %s; use one of: %s", r.Cache, r.Namespace, strings.Join(names, ", "))
	}
	return nil
}

// findMemberCache returns the MemberCache in the member of the request. Without a member,
// it selects the first one with children.
func findMemberCache(ctx context.Context, hub client.Client, r *Request) (*v1alpha1.MemberCache, error) {
	if r.Member != "" {
		mc := &v1alpha1.MemberCache{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Cache + "." + r.Member}, mc)
		if apierrors.IsNotFound(err) {
			return nil, badInput("CacheCluster %s/%s is not placed in %s; see reconcile-lab status %s", r.Namespace, r.Cache, r.Member, r.Cache)
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
	return nil, badInput("CacheCluster %s/%s has no children in any member yet; see reconcile-lab status %s", r.Namespace, r.Cache, r.Cache)
}

// selectChild returns the child that KIND or KIND/NAME selects. The default is the
// StatefulSet.
func selectChild(children []v1alpha1.InventoryEntry, selector string) (v1alpha1.InventoryEntry, error) {
	kind, name, _ := strings.Cut(cmp.Or(selector, "StatefulSet"), "/")
	var choices []string
	for _, c := range children {
		if strings.EqualFold(c.Kind, kind) && (name == "" || c.Name == name) {
			return c, nil
		}
		choices = append(choices, c.Kind+"/"+c.Name)
	}
	if len(choices) == 0 {
		return v1alpha1.InventoryEntry{}, errors.New("no children yet")
	}
	return v1alpha1.InventoryEntry{}, fmt.Errorf("--kind: %q: not found; use one of: %s", kind, strings.Join(choices, ", "))
}

// findField selects the child, and adds defaults for the field and the value to the
// request.
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
	target, err := field.Find(f.Object.Before.Object, r.Field)
	if err != nil {
		return badInput("%s: %w", f.Object, err)
	}
	old, exists := target.Value()
	var value any
	switch {
	case r.Value != "":
		value, err = field.Parse(r.Value, old)
	case exists:
		value, err = field.Different(old)
	default:
		return badInput("%s: %s is not set; set it with --value", f.Object, r.Field)
	}
	if err != nil {
		return badInput("%s %s: %w", f.Object, r.Field, err)
	}
	f.Object.Field = r.Field
	if f.Object.Value, err = json.Marshal(value); err != nil {
		return err
	}
	before := "unset"
	if exists {
		before = fmt.Sprint(old)
	}
	f.Description = fmt.Sprintf("%s %s %s: %s → %v, by %s", r.Member, f.Object, r.Field, before, value, r.Manager)
	return nil
}

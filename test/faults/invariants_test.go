//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/override"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// settling is how long after the noise everything may take, the longest pause
// between two tries included.
const settling = 90 * time.Second

// settles waits until every invariant is true and nothing is written any more.
func (w *world) settles() error {
	var last error
	err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, settling, true, func(ctx context.Context) (bool, error) {
		err := w.invariants(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		if errors.Is(err, errFinal) {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

func (w *world) invariants(ctx context.Context) error {
	if err := w.untouched(ctx); err != nil {
		return err
	}
	if err := w.reachable(ctx); err != nil {
		return err
	}
	for _, name := range cacheNames {
		var err error
		if cc := w.caches[name]; cc != nil {
			err = w.isThere(ctx, name)
		} else {
			err = w.isGone(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if quietFor := w.trace.Quiet(); quietFor < 3*quiet/2 {
		return fmt.Errorf("written %s ago: %v", quietFor, w.trace.lastPoint())
	}
	return nil
}

// isThere: the status is true, and every member has what it should.
func (w *world) isThere(ctx context.Context, name string) error {
	cc := &v1alpha1.CacheCluster{}
	if err := w.Hub.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, cc); err != nil {
		return err
	}
	var inTheWay []string
	for _, member := range memberNames {
		placed := slices.Contains(cc.Spec.Placement.Clusters, member)
		entry := entryOf(cc, member)
		switch {
		case !placed:
			if entry != nil {
				return fmt.Errorf("the status names %s, where it is not placed", member)
			}
			if err := w.holdsNone(ctx, member, name); err != nil {
				return err
			}
		case entry == nil:
			return fmt.Errorf("the status does not name %s", member)
		case w.foreign[place{member, name}]:
			inTheWay = append(inTheWay, member)
			if entry.State != v1alpha1.MemberBlocked || entry.Reason != v1alpha1.ReasonObjectOfAnother {
				return fmt.Errorf("%s is %s (%s) %s; another owner's Service is in the way", member, entry.State, entry.Reason, entry.Message)
			}
		default:
			if err := w.holds(ctx, cc, member, entry); err != nil {
				return fmt.Errorf("%s: %w", member, err)
			}
		}
	}
	c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady)
	want := metav1.ConditionTrue
	if len(inTheWay) > 0 {
		want = metav1.ConditionFalse
	}
	if c == nil || c.Status != want || c.ObservedGeneration != cc.Generation || cc.Status.ObservedGeneration != cc.Generation {
		return fmt.Errorf("%s; Ready should be %s", reportOf(cc, time.Time{}, false).Text, want)
	}
	return nil
}

func entryOf(cc *v1alpha1.CacheCluster, member string) *v1alpha1.ClusterStatus {
	for i := range cc.Status.Clusters {
		if cc.Status.Clusters[i].Name == member {
			return &cc.Status.Clusters[i]
		}
	}
	return nil
}

// holds returns nil if the children exist, another apply would change nothing, and the
// member's entry reports the same.
func (w *world) holds(ctx context.Context, cc *v1alpha1.CacheCluster, member string, entry *v1alpha1.ClusterStatus) error {
	mc := &v1alpha1.MemberCache{}
	if err := w.Hub.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: cc.Name + "." + member}, mc); err != nil {
		return err
	}
	template, _ := override.Apply(cc.Spec.CacheTemplate, cc.Spec.Overrides, placement.Member{Name: member})
	if diff := cmp.Diff(template, mc.Spec.Template); diff != "" {
		return fmt.Errorf("the MemberCache has another template:\n%s", diff)
	}
	children, problems := render.Render(mc)
	if len(problems) > 0 {
		return fmt.Errorf("%v", problems)
	}
	for _, child := range children {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(child.Intent.GroupVersionKind())
		c := w.Members[member].Client
		if err := c.Get(ctx, client.ObjectKeyFromObject(child.Intent), live); err != nil {
			return err
		}
		applied := child.Intent.DeepCopy()
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.DryRunAll); err != nil {
			return err
		}
		if diff := cmp.Diff(Normalise(applied), Normalise(live)); diff != "" {
			return fmt.Errorf("%s differs from the spec (-asked +is):\n%s", live.GetKind(), diff)
		}
		if _, ready := Essence(live); !ready {
			return fmt.Errorf("%s is not ready", live.GetKind())
		}
	}
	wanted := ptr.Deref(cc.Spec.Replicas, 1)
	if entry.State != v1alpha1.MemberReady || entry.ReadyReplicas != wanted || entry.Replicas != wanted {
		return fmt.Errorf("the status is %s (%s) %s with %d of %d replicas", entry.State, entry.Reason, entry.Message, entry.ReadyReplicas, entry.Replicas)
	}
	return nil
}

// holdsNone: no child of the cache is in the member.
func (w *world) holdsNone(ctx context.Context, member, name string) error {
	for _, kind := range childKinds {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		err := w.Members[member].Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, u)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case kind.Kind == "Service" && w.foreign[place{member, name}]:
		default:
			return fmt.Errorf("%s holds a %s", member, kind.Kind)
		}
	}
	return nil
}

func (w *world) isGone(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&v1alpha1.CacheCluster{ObjectMeta: w.at(name)}, &v1alpha1.MemberCache{ObjectMeta: w.at(name + "." + one)},
		&v1alpha1.MemberCache{ObjectMeta: w.at(name + "." + two)}, &v1alpha1.MemberCache{ObjectMeta: w.at(name + "." + three)},
	} {
		if err := w.Hub.Client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is there (%v)", object, object.GetName(), err)
		}
	}
	for _, member := range memberNames {
		if err := w.holdsNone(ctx, member, name); err != nil {
			return err
		}
	}
	return nil
}

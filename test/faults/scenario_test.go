//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// scenario is something that happens to one CacheCluster in a namespace of its own.
type scenario struct {
	name string
	// setup runs before the recording. The recording begins when the CacheCluster, if there
	// is one, is ready and no write follows.
	setup func(*run) error
	// act is what happens, done what more than Ready for the present generation shows
	// that it is over. cc is nil when there is none.
	act  func(*run) error
	done func(r *run, cc *v1alpha1.CacheCluster) error
	// ends: afterwards there is no CacheCluster.
	ends bool
	// differs: the policy lets children differ from what is asked for.
	differs bool
}

func scenarios() []scenario {
	set := func(r *run) client.Object { return &appsv1.StatefulSet{ObjectMeta: r.at()} }
	service := func(r *run) client.Object { return &corev1.Service{ObjectMeta: r.at()} }
	budget := func(r *run) client.Object { return &policyv1.PodDisruptionBudget{ObjectMeta: r.at()} }
	return []scenario{
		{name: "create", act: placed(one, two)},
		{name: "update-image", setup: placed(one, two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Image = "memcached:1.6.38" })},
		{name: "update-memory", setup: placed(one, two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Memory = ptr.To(resource.MustParse("128Mi")) })},
		{name: "scale", setup: placed(one, two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](4) })},
		{name: "drift-statefulset", setup: placed(one, two), done: repaired(one), act: edited(one, set, func(o client.Object) {
			o.(*appsv1.StatefulSet).Spec.Replicas = ptr.To[int32](7)
		})},
		{name: "drift-image", setup: placed(one, two), done: repaired(two), act: edited(two, set, func(o client.Object) {
			o.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image = "memcached:evil"
		})},
		{name: "drift-service", setup: placed(one, two), done: repaired(one), act: edited(one, service, func(o client.Object) {
			o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(9)
		})},
		{name: "drift-budget", setup: placed(one, two), done: repaired(one), act: edited(one, budget, func(o client.Object) {
			o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = ptr.To(intstr.FromInt32(2))
		})},
		{name: "drift-label", setup: placed(one, two), done: repaired(one), act: edited(one, set, func(o client.Object) {
			labels := o.GetLabels()
			delete(labels, v1alpha1.LabelCacheCluster)
			o.SetLabels(labels)
		})},
		{name: "lose-statefulset", setup: placed(one, two), done: repaired(one), act: removed(one, set)},
		{name: "lose-service", setup: placed(one, two), done: repaired(one), act: removed(one, service)},
		{name: "lose-budget", setup: placed(one, two), done: repaired(one), act: removed(one, budget)},
		{name: "drift-reported", setup: placedWith(reportOnly, one, two), differs: true, done: reported(one), act: edited(one, set, func(o client.Object) {
			o.(*appsv1.StatefulSet).Spec.Replicas = ptr.To[int32](3)
		})},
		{name: "recreate-around-pods", setup: placedWith(consent, one, two), act: changed(func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
		})},
		{name: "place-more", setup: placed(one, two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one, two, three} })},
		{name: "place-less", setup: placed(one, two), done: left(two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one} })},
		{name: "place-elsewhere", setup: placed(one, two), done: left(two), act: changed(func(cc *v1alpha1.CacheCluster) { cc.Spec.Placement.Clusters = []string{one, three} })},
		{name: "delete", setup: placed(one, two), act: deleted, done: goneEverywhere, ends: true},
		{name: "recreate", setup: placed(one, two), act: func(r *run) error {
			if err := deleted(r); err != nil {
				return err
			}
			return placed(one, two)(r)
		}, done: livesAgain},
		{name: "take-over", act: func(r *run) error {
			if err := r.standsThere(one); err != nil {
				return err
			}
			return placedWith(takeOver, one, two)(r)
		}},
		{name: "orphan", setup: placedWith(orphan, one, two), act: deleted, ends: true, done: func(_ *run, cc *v1alpha1.CacheCluster) error {
			if cc != nil {
				return errors.New("the CacheCluster is there")
			}
			return nil
		}},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// errFinal is not retried.
var errFinal = errors.New("final")

// final marks an error that a retry does not help. The errors of a busy machine pass.
func final(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	return err
}

// placed creates the CacheCluster.
func placed(members ...string) func(*run) error {
	return placedWith(func(*v1alpha1.CacheCluster) {}, members...)
}

func reportOnly(cc *v1alpha1.CacheCluster) {
	cc.Spec.Policies.Drift = &v1alpha1.DriftPolicy{Policy: v1alpha1.DriftReport}
}

func takeOver(cc *v1alpha1.CacheCluster) { cc.Spec.Policies.Takeover = v1alpha1.TakeoverAlways }

func orphan(cc *v1alpha1.CacheCluster) {
	cc.Spec.Policies.Deletion = &v1alpha1.DeletionPolicy{Policy: v1alpha1.DeletionOrphan}
}

// standsThere makes objects of helm where the children of a cache will be.
func (r *run) standsThere(member string) error {
	c := r.Members[member].Client
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}},
		&corev1.Service{ObjectMeta: r.at(), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
			// Without one it would be a Service of two IP families.
			Selector: map[string]string{"app": "cache"},
			Ports:    []corev1.ServicePort{{Name: "cache", Port: 11211, TargetPort: intstr.FromInt32(7)}}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: r.at(), Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}}}},
	} {
		if err := r.until("make what stands there", 20*time.Millisecond, func(ctx context.Context) error {
			return final(client.IgnoreAlreadyExists(c.Create(ctx, object, client.FieldOwner("helm"))))
		}); err != nil {
			return err
		}
	}
	return nil
}

func consent(cc *v1alpha1.CacheCluster) { cc.Spec.Policies.Recreate = v1alpha1.RecreateOrphanPods }

// placedWith creates the CacheCluster with a change. It waits for the end of a
// CacheCluster of the same name that is being deleted.
func placedWith(how func(*v1alpha1.CacheCluster), members ...string) func(*run) error {
	return func(r *run) error {
		return r.until("create the CacheCluster", 20*time.Millisecond, func(ctx context.Context) error {
			cc := &v1alpha1.CacheCluster{
				ObjectMeta: r.at(),
				Spec: v1alpha1.CacheClusterSpec{
					CacheTemplate: v1alpha1.CacheTemplate{Replicas: ptr.To[int32](2), Memory: ptr.To(resource.MustParse("64Mi"))},
					Placement:     v1alpha1.Placement{Clusters: members},
				},
			}
			how(cc)
			err := r.Hub.Client.Create(ctx, cc)
			return final(err)
		})
	}
}

// changed patches the CacheCluster's spec.
func changed(how func(*v1alpha1.CacheCluster)) func(*run) error {
	return func(r *run) error {
		cc := &v1alpha1.CacheCluster{ObjectMeta: r.at()}
		err := r.patch(hub, cc, "kubectl-edit", func() { how(cc) })
		r.asked = cc.Generation
		return err
	}
}

// edited changes a child as kubectl edit does.
func edited(member string, what func(*run) client.Object, how func(client.Object)) func(*run) error {
	return func(r *run) error {
		object := what(r)
		return r.patch(member, object, "kubectl-edit", func() { how(object) })
	}
}

// removed deletes a child.
func removed(member string, what func(*run) client.Object) func(*run) error {
	return func(r *run) error {
		return r.until("delete the child", 20*time.Millisecond, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.Members[member].Client.Delete(ctx, what(r), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
	}
}

func deleted(r *run) error {
	return r.until("delete the CacheCluster", 20*time.Millisecond, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.Hub.Client.Delete(ctx, &v1alpha1.CacheCluster{ObjectMeta: r.at()}))
	})
}

// repaired: the children in the member are again what they were, after one was not.
func repaired(member string) func(*run, *v1alpha1.CacheCluster) error {
	return func(r *run, cc *v1alpha1.CacheCluster) error {
		if entry := entryOf(cc, member); r.known.state == nil && (entry == nil || entry.LastDrift == nil) {
			return fmt.Errorf("the drift in %s is not reported", member)
		}
		changed := false
		for key, text := range r.before[member] {
			if !r.sighting.shows(member, key, text) {
				return fmt.Errorf("%s is not repaired in %s", key, member)
			}
			changed = changed || r.sighting.count(member, key) > 1
		}
		if !changed {
			return fmt.Errorf("the drift in %s was not seen", member)
		}
		return nil
	}
}

// reported: the status reports that a child in the member differs.
func reported(member string) func(*run, *v1alpha1.CacheCluster) error {
	return func(_ *run, cc *v1alpha1.CacheCluster) error {
		if entry := entryOf(cc, member); entry == nil || len(entry.OpenDrifts) == 0 {
			return fmt.Errorf("the drift in %s is not reported", member)
		}
		return nil
	}
}

// left: the member has no child, and the status no longer names it.
func left(member string) func(*run, *v1alpha1.CacheCluster) error {
	return func(r *run, cc *v1alpha1.CacheCluster) error {
		for i := range cc.Status.Clusters {
			if cc.Status.Clusters[i].Name == member {
				return fmt.Errorf("the status has an entry of %s", member)
			}
		}
		return r.sighting.empty(member)
	}
}

func goneEverywhere(r *run, cc *v1alpha1.CacheCluster) error {
	if cc != nil {
		return fmt.Errorf("the CacheCluster is there")
	}
	for member := range r.Members {
		if err := r.sighting.empty(member); err != nil {
			return err
		}
	}
	return nil
}

func livesAgain(r *run, cc *v1alpha1.CacheCluster) error {
	if r.sighting.life(cc) < 1 {
		return fmt.Errorf("it is the old CacheCluster")
	}
	return nil
}

// at is the name of everything in a run.
func (r *run) at() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.namespace, Name: "cache"} }

// patch changes the live object; a conflict with another writer is retried.
func (r *run) patch(server string, object client.Object, manager string, how func()) error {
	c := r.server(server)
	return r.until("patch "+object.GetName(), 10*time.Millisecond, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", object)
		}
		how()
		err := c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(manager))
		return final(err)
	})
}

//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/inventory"
	"github.com/reconcile-lab/reconcile-lab/internal/manager"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// swift probes notice within a second or two what the manager's own notice in 12 s.
var swift = inventory.Timing{Interval: 500 * time.Millisecond, Recheck: 200 * time.Millisecond, Deadline: time.Second,
	Retry: 100 * time.Millisecond, MaxRetry: 500 * time.Millisecond, Sync: 10 * time.Second}

// world is the fleet with a gate before each member, a clock that jumps, and what
// should be true of it.
type world struct {
	*fleet
	ctx       context.Context
	namespace string
	gates     map[string]*harness.Gate
	clock     *jumpingClock
	profiles  map[string]*clusterinventory.ClusterProfile

	// caches that users want, by name.
	caches map[string]*v1alpha1.CacheCluster
	// kept are objects that must not change: the server and the created object.
	kept []keptObject
	// foreign holds the places where another owner's object blocks a cache.
	foreign map[place]bool
	trace   *Trace
}

type place struct{ member, name string }

type keptObject struct {
	server string
	object client.Object
}

// jumpingClock is the real one and an offset.
type jumpingClock struct{ offset atomic.Int64 }

func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// gated puts a gate before each member, in the credential that the hub has of it.
func (f *fleet) gated(ctx context.Context) (map[string]*harness.Gate, error) {
	gates := map[string]*harness.Gate{}
	for name, s := range f.Members {
		address, err := url.Parse(s.Config.Host)
		if err != nil {
			return nil, err
		}
		gate, err := harness.NewGate(ctx, address.Host)
		if err != nil {
			return nil, err
		}
		if err := gate.Forward(ctx); err != nil {
			return nil, err
		}
		gates[name] = gate
		var secrets corev1.SecretList
		if err := f.Hub.Client.List(ctx, &secrets, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{v1alpha1.LabelCredentialOf: name}); err != nil {
			return nil, err
		}
		for i := range secrets.Items {
			secret := &secrets.Items[i]
			config, err := clientcmd.Load(secret.Data[v1alpha1.CredentialKey])
			if err != nil {
				return nil, err
			}
			for _, c := range config.Clusters {
				c.Server = "https://" + gate.Address()
			}
			if secret.Data[v1alpha1.CredentialKey], err = clientcmd.Write(*config); err != nil {
				return nil, err
			}
			if err := f.Hub.Client.Update(ctx, secret); err != nil {
				return nil, err
			}
		}
	}
	return gates, nil
}

// newWorld starts a manager and makes what stands by: objects of others, and claims
// of pods, in every member.
func newWorld(ctx context.Context, f *fleet, gates map[string]*harness.Gate) (*world, error) {
	w := &world{fleet: f, ctx: ctx, namespace: f.space(), gates: gates, clock: &jumpingClock{},
		profiles: map[string]*clusterinventory.ClusterProfile{}, caches: map[string]*v1alpha1.CacheCluster{}, foreign: map[place]bool{}}
	w.trace = f.board.Open(w.namespace)
	w.trace.Begin()
	for _, server := range append(slices.Sorted(maps.Keys(f.Members)), hub) {
		if err := f.server(server).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
			return nil, err
		}
	}
	for name := range f.Members {
		for _, cache := range cacheNames {
			if err := w.keep(name, w.claim(cache)); err != nil {
				return nil, err
			}
		}
		for _, bystander := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bystander", Labels: map[string]string{v1alpha1.LabelManagedBy: "other-client"}}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "bystander"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		} {
			if err := w.keep(name, bystander); err != nil {
				return nil, err
			}
		}
	}
	return w, w.boot()
}

// claim is a PersistentVolumeClaim as the StatefulSet controller makes it.
func (w *world) claim(cache string) client.Object {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-" + cache + "-0", Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelInstance: cache, v1alpha1.LabelCacheCluster: cache}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: oneGi}}},
	}
}

// keep creates an object that must not change.
func (w *world) keep(server string, object client.Object) error {
	object.SetNamespace(w.namespace)
	if err := w.server(server).Create(w.ctx, object, client.FieldOwner("other-client")); err != nil {
		return err
	}
	w.kept = append(w.kept, keptObject{server, object})
	return nil
}

// boot starts a manager as its supervisor does: again and again while the hub serves
// stale data.
func (w *world) boot() (err error) {
	waited := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err = w.start(func(o *manager.Options) { o.Clock, o.Timing = w.clock, swift })
		return err == nil, nil
	})
	return errors.Join(err, waited)
}

// heal ends all faults: members answer and are joined again, and no cache is stale.
func (w *world) heal() error {
	w.board.Truth()
	for name := range w.Members {
		if err := w.gates[name].Forward(w.ctx); err != nil {
			return err
		}
		if err := w.join(name); err != nil {
			return err
		}
	}
	return nil
}

// leave deletes the profile of a member; the credential stays.
func (w *world) leave(name string) error {
	if w.profiles[name] != nil {
		return nil
	}
	profile := &clusterinventory.ClusterProfile{}
	if err := w.Hub.Client.Get(w.ctx, client.ObjectKey{Namespace: v1alpha1.InventoryNamespace, Name: name}, profile); err != nil {
		return err
	}
	w.profiles[name] = profile
	return w.Hub.Client.Delete(w.ctx, profile)
}

func (w *world) join(name string) error {
	before := w.profiles[name]
	if before == nil {
		return nil
	}
	delete(w.profiles, name)
	profile := &clusterinventory.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: name, Labels: before.Labels, Annotations: before.Annotations},
		Spec:       before.Spec,
	}
	return w.Hub.Client.Create(w.ctx, profile)
}

// end removes the caches and stops the manager.
func (w *world) end() error {
	defer w.board.Close(w.namespace)
	for name := range w.caches {
		if err := w.Hub.Client.Delete(w.ctx, &v1alpha1.CacheCluster{ObjectMeta: w.at(name)}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err := wait.PollUntilContextTimeout(w.ctx, 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		var remaining v1alpha1.CacheClusterList
		err := w.Hub.Client.List(ctx, &remaining, client.InNamespace(w.namespace))
		return err == nil && len(remaining.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("delete the caches: %w", err)
	}
	return w.manager.Stop()
}

func (w *world) at(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// untouched returns an error that names a kept object that changed.
func (w *world) untouched(ctx context.Context) error {
	for _, k := range w.kept {
		now, ok := k.object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", k.object)
		}
		err := w.server(k.server).Get(ctx, client.ObjectKeyFromObject(k.object), now)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%w: %s: %T %s was deleted", errFinal, k.server, now, k.object.GetName())
		case err != nil:
			return err
		case now.GetUID() != k.object.GetUID() || now.GetResourceVersion() != k.object.GetResourceVersion():
			return fmt.Errorf("%w: %s: %T %s was changed", errFinal, k.server, now, k.object.GetName())
		}
	}
	return nil
}

// reachable: every profile reports that its member answers.
func (w *world) reachable(ctx context.Context) error {
	for name := range w.Members {
		profile := &clusterinventory.ClusterProfile{}
		if err := w.Hub.Client.Get(ctx, types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: name}, profile); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("the profile of %s has the condition %+v", name, c)
		}
	}
	return nil
}

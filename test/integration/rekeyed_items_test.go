package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// The key of some lists is another field than the name of their items. If another client
// changed the key of an item, an apply of ours would result in two items of one name. API
// servers refuse that.
func TestRekeyedItem_IsCorrectedInPlace(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "moved")
	cc := cache(ns, "sessions", one)
	cc.Spec.Storage = &v1alpha1.StorageSpec{Size: *quantity("1Gi")}
	cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
	create(t, cc)
	isReady(t, cc)
	set, headless, _ := childrenOf(ns, "sessions")
	clients := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}}
	container := func() *corev1.Container { return &set.Spec.Template.Spec.Containers[0] }
	portOf := func(service *corev1.Service) func() error {
		return func() error {
			reload(t, lab.Members[one].Client, service)
			if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 11211 || ports[0].Name == "" {
				return fmt.Errorf("ports %v", ports)
			}
			return nil
		}
	}
	for i, c := range []struct {
		name, want string
		edit       func()
		right      func() error
	}{
		{"the port of the headless Service", `Service/sessions spec.ports[port=11211,protocol="TCP"].port 11211→11300 by kubectl-edit`,
			func() { edit(t, one, headless, func() { headless.Spec.Ports[0].Port = 11300 }) }, portOf(headless)},
		{"the protocol of the clients' Service", `Service/sessions-client spec.ports[port=11211,protocol="TCP"].protocol "TCP"→"UDP" by kubectl-edit`,
			func() { edit(t, one, clients, func() { clients.Spec.Ports[0].Protocol = corev1.ProtocolUDP }) }, portOf(clients)},
		{"the clients' port, with more of it", `Service/sessions-client spec.ports[port=11211,protocol="TCP"].port 11211→11300 spec.ports[port=11211,protocol="TCP"].targetPort "client"→1 by kubectl-edit`,
			func() {
				edit(t, one, clients, func() {
					clients.Spec.Ports[0].Port, clients.Spec.Ports[0].TargetPort = 11300, intstr.FromInt32(1)
				})
			}, portOf(clients)},
		{"a container's port", `StatefulSet/sessions spec.template.spec.containers[name="memcached"].ports[containerPort=11211,protocol="TCP"].containerPort 11211→11300 by kubectl-edit`,
			func() { edit(t, one, set, func() { container().Ports[0].ContainerPort = 11300 }) },
			func() error {
				reload(t, lab.Members[one].Client, set)
				if ports := container().Ports; len(ports) != 1 || ports[0].ContainerPort != 11211 {
					return fmt.Errorf("ports %v", ports)
				}
				return nil
			}},
	} {
		c.edit()
		eventually(t, c.name+" is corrected", func(context.Context) error { return c.right() })
		becomes(t, cc, "reports "+c.name, func(now *v1alpha1.CacheCluster) error {
			entry, err := statusOf(now, one)
			if err != nil {
				return err
			}
			if entry.LastDrift == nil || entry.LastDrift.Count != int64(i+1) {
				return fmt.Errorf("last drift %+v", entry.LastDrift)
			}
			if is := driftsOf([]v1alpha1.DriftFinding{entry.LastDrift.DriftFinding})[0]; is != c.want {
				return fmt.Errorf("last drift %q, want %q", is, c.want)
			}
			return nil
		})
		isReady(t, cc)
	}
}

// A mutually exclusive sibling of another client is removed when the API server refuses
// both fields: another kind of probe, the other bound of a budget. Other fields stay.
func TestConflictingSibling_IsRemovedWithCorrection(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "in-the-way")
	cc := cache(ns, "sessions", one)
	cc.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
	create(t, cc)
	isReady(t, cc)
	set, _, budget := childrenOf(ns, "sessions")
	clients := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions-client"}}
	container := func() *corev1.Container { return &set.Spec.Template.Spec.Containers[0] }
	edit(t, one, set, func() { container().Env = []corev1.EnvVar{{Name: "TEAM", Value: "checkout"}} })
	for i, c := range []struct {
		name   string
		object client.Object
		edit   func()
		right  func() bool
	}{
		{"a probe of another kind", set, func() {
			container().ReadinessProbe.ProbeHandler = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
		}, func() bool {
			return container().ReadinessProbe.TCPSocket != nil && container().ReadinessProbe.Exec == nil
		}},
		{"a container that may do anything", set, func() {
			container().SecurityContext.Privileged, container().SecurityContext.AllowPrivilegeEscalation = ptr.To(true), ptr.To(true)
		}, func() bool {
			is := container().SecurityContext
			return !ptr.Deref(is.AllowPrivilegeEscalation, true) && !ptr.Deref(is.Privileged, false)
		}},
		{"the other bound of the budget", budget, func() {
			budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)), nil
		}, func() bool { return budget.Spec.MinAvailable == nil && budget.Spec.MaxUnavailable != nil }},
		{"a load balancer with its own fields", clients, func() {
			clients.Spec.Type, clients.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"10.0.0.0/8"}
		}, func() bool {
			return clients.Spec.Type == corev1.ServiceTypeClusterIP && len(clients.Spec.LoadBalancerSourceRanges) == 0
		}},
	} {
		edit(t, one, c.object, c.edit)
		eventually(t, c.name+" is corrected", func(context.Context) error {
			if reload(t, lab.Members[one].Client, c.object); !c.right() {
				return errors.New("it is not")
			}
			return nil
		})
		becomes(t, cc, "counts "+c.name, func(now *v1alpha1.CacheCluster) error {
			if entry, err := statusOf(now, one); err != nil || entry.LastDrift == nil || entry.LastDrift.Count != int64(i+1) {
				return fmt.Errorf("%v, last drift %+v", err, entry)
			}
			return nil
		})
		isReady(t, cc)
	}
	if reload(t, lab.Members[one].Client, set); len(container().Env) != 1 {
		t.Errorf("env %v: another item does not conflict and must stay", container().Env)
	}
}

// A changed spec meets an item that was moved before: it was only reported.
func TestRekeyedItem_IsCorrectedWithChangedSpec(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "moved-wish")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Policy: v1alpha1.DriftReport}))
	isReady(t, cc)
	set, _, _ := childrenOf(ns, "sessions")
	edit(t, one, set, func() { set.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 11300 })
	opens(t, cc, one, `StatefulSet/sessions spec.template.spec.containers[name="memcached"].ports[containerPort=11211,protocol="TCP"].containerPort 11211→11300 by kubectl-edit`)

	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Memory = quantity("80Mi") })

	eventually(t, "the new spec is there, with the port", func(context.Context) error {
		reload(t, lab.Members[one].Client, set)
		c := set.Spec.Template.Spec.Containers[0]
		if len(c.Ports) != 1 || c.Ports[0].ContainerPort != 11211 {
			return fmt.Errorf("ports %v", c.Ports)
		}
		if c.Args[1] != "80" {
			return errors.New("the old memory")
		}
		return nil
	})
	isReady(t, cc)
}

package inventory

import (
	"bytes"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/conditions"
)

// reachability is the state of the connection to a member. The zero value is unknown.
type reachability struct {
	reachable       bool
	reason, message string
}

func reachable(message string) reachability {
	return reachability{reachable: true, reason: v1alpha1.ReasonReachable, message: message}
}

func (r reachability) known() bool { return r.reason != "" }

// publish writes the state of the connection to the ClusterProfile and the metrics. It
// compares with the profile each time, so that a write that was lost is repeated.
func (m *member) publish() {
	if !m.state.known() || m.context.Err() != nil {
		return
	}
	m.metrics.setBreaker(m.breaker())
	m.metrics.setExpiry(m.lifetime().until)

	o := m.inventory.options
	ctx, cancel := context.WithTimeout(m.context, o.Timing.Interval)
	defer cancel()
	hub := o.Hub()
	profile := &clusterinventory.ClusterProfile{}
	if err := hub.GetCache().Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: m.name}, profile); err != nil {
		return
	}
	status, changed := m.statusFor(profile, o.Clock.Now())
	if !changed {
		return
	}
	started := o.Clock.Now()
	logger := log.FromContext(m.context).WithValues("action", "update status", "kind", "ClusterProfile")
	err := hub.GetClient().Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	switch {
	case err == nil:
		logger.V(2).Info("Wrote object", "cause", m.state.message, "duration", o.Clock.Now().Sub(started))
	case m.context.Err() == nil:
		logger.Error(err, "Failed to write the status of the ClusterProfile")
	}
}

// statusFor returns the part of a profile's status that the inventory owns: its
// conditions, and the Kubernetes version of the member. It reports whether that differs
// from the profile.
func (m *member) statusFor(profile *clusterinventory.ClusterProfile, now time.Time) (status *unstructured.Unstructured, changed bool) {
	old := profile.Status.Conditions
	version := profile.Status.Version.Kubernetes
	if m.engaged != nil && m.engaged.version != "" {
		version = m.engaged.version
	}
	changed = version != profile.Status.Version.Kubernetes
	desired := m.conditions(now)
	if conditions.Get(desired, v1alpha1.ConditionCredentialExpiring) == nil && conditions.Get(old, v1alpha1.ConditionCredentialExpiring) != nil {
		changed = true
	}
	for i, c := range desired {
		changed = changed || !conditions.Equal(old, c)
		desired[i] = conditions.Transition(old, c, now)
	}
	if !changed {
		return nil, false
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions.Encode(desired)}}}
	if version != "" {
		_ = unstructured.SetNestedField(u.Object, version, "status", "version", "kubernetes")
	}
	u.SetGroupVersionKind(clusterinventory.GroupVersion.WithKind("ClusterProfile"))
	u.SetNamespace(profile.Namespace)
	u.SetName(profile.Name)
	return u, true
}

// conditions returns the conditions of the member's ClusterProfile.
func (m *member) conditions(now time.Time) []metav1.Condition {
	all := []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: conditions.Status(m.state.reachable), Reason: m.state.reason, Message: m.state.message}}
	if expiring := m.lifetime().condition(m.name, now); expiring != nil {
		all = append(all, *expiring)
	}
	return all
}

// lifetime returns the lifetime of the credential in use.
func (m *member) lifetime() lifetime {
	if !bytes.Equal(m.expiry.credential, m.credential) {
		m.expiry.credential, m.expiry.lifetime = m.credential, lifetimeOf(m.credential)
	}
	return m.expiry.lifetime
}

package inventory

import (
	"bytes"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// reachability is what is known of the connection to a member. The zero value
// knows nothing.
type reachability struct {
	yes             bool
	reason, message string
}

func reachable(message string) reachability {
	return reachability{yes: true, reason: v1alpha1.ReasonReachable, message: message}
}

func (r reachability) known() bool { return r.reason != "" }

// publish makes the profile's condition say what is known. It compares with the
// profile each time, so that a write that was lost is made up for.
func (m *member) publish() {
	if !m.state.known() || m.context.Err() != nil {
		return
	}
	m.metrics.connection(m.breaker())
	m.metrics.expiry(m.lifetime().until)

	ctx, cancel := context.WithTimeout(m.context, m.inventory.options.Timing.Interval)
	defer cancel()
	hub := m.inventory.options.Hub()
	profile := &clusterinventory.ClusterProfile{}
	key := client.ObjectKey{Namespace: m.inventory.options.Namespace, Name: m.name}
	if err := hub.GetCache().Get(ctx, key, profile); err != nil {
		return
	}
	status, changed := m.statusFor(profile, m.inventory.options.Clock.Now())
	if !changed {
		return
	}
	if err := hub.GetClient().Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil && m.context.Err() == nil {
		log.FromContext(m.context).Error(err, "write the condition of the ClusterProfile")
	}
}

// statusFor is the part of a profile's status that is ours: the conditions, and the
// version of the member's Kubernetes.
func (m *member) statusFor(profile *clusterinventory.ClusterProfile, now time.Time) (*unstructured.Unstructured, bool) {
	version := profile.Status.Version.Kubernetes
	if m.live != nil && m.live.version != "" {
		version = m.live.version
	}
	changed := version != profile.Status.Version.Kubernetes
	wanted := m.conditions(now)
	if len(wanted) == 1 && meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionCredentialExpiring) != nil {
		changed = true
	}
	conditions := make([]any, 0, len(wanted))
	for _, c := range wanted {
		since := now
		old := meta.FindStatusCondition(profile.Status.Conditions, c.Type)
		if old != nil && old.Status == c.Status {
			since = old.LastTransitionTime.Time
		}
		changed = changed || old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
		conditions = append(conditions, map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason,
			"message": c.Message, "lastTransitionTime": since.UTC().Format(time.RFC3339)})
	}
	if !changed {
		return nil, false
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	if version != "" {
		_ = unstructured.SetNestedField(u.Object, version, "status", "version", "kubernetes")
	}
	u.SetGroupVersionKind(clusterinventory.GroupVersion.WithKind("ClusterProfile"))
	u.SetNamespace(profile.Namespace)
	u.SetName(profile.Name)
	return u, true
}

// conditions of the member's ClusterProfile.
func (m *member) conditions(now time.Time) []metav1.Condition {
	reachable := metav1.Condition{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionFalse, Reason: m.state.reason, Message: m.state.message}
	if m.state.yes {
		reachable.Status = metav1.ConditionTrue
	}
	all := []metav1.Condition{reachable}
	if expiring := m.lifetime().condition(m.name, now); expiring != nil {
		all = append(all, *expiring)
	}
	return all
}

// lifetime of the credential in use.
func (m *member) lifetime() lifetime {
	if !bytes.Equal(m.life.of, m.credential) {
		m.life.of, m.life.lifetime = m.credential, lifetimeOf(m.credential)
	}
	return m.life.lifetime
}

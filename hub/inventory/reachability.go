package inventory

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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

var memberReachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Namespace: "reconcile_lab", Name: "member_reachable",
	Help: "1 while the member's API server answers, 0 while it does not.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(memberReachable) }

func forgetReachability(name string) { memberReachable.DeleteLabelValues(name) }

// publish makes the profile's condition say what is known. It compares with the
// profile each time, so that a write that was lost is made up for.
func (m *member) publish() {
	if !m.state.known() || m.context.Err() != nil {
		return
	}
	value := 0.0
	if m.state.yes {
		value = 1
	}
	memberReachable.WithLabelValues(m.name).Set(value)

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

// statusFor is the part of a profile's status that is ours: one condition, and
// the version of the member's Kubernetes.
func (m *member) statusFor(profile *clusterinventory.ClusterProfile, now time.Time) (*unstructured.Unstructured, bool) {
	is := metav1.ConditionFalse
	if m.state.yes {
		is = metav1.ConditionTrue
	}
	version := profile.Status.Version.Kubernetes
	if m.live != nil && m.live.version != "" {
		version = m.live.version
	}
	since := now.UTC().Format(time.RFC3339)
	if old := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReachable); old != nil && old.Status == is {
		if old.Reason == m.state.reason && old.Message == m.state.message && version == profile.Status.Version.Kubernetes {
			return nil, false
		}
		since = old.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{
			"conditions": []any{map[string]any{
				"type": v1alpha1.ConditionReachable, "status": string(is), "reason": m.state.reason,
				"message": m.state.message, "lastTransitionTime": since,
			}},
		},
	}}
	if version != "" {
		_ = unstructured.SetNestedField(u.Object, version, "status", "version", "kubernetes")
	}
	u.SetGroupVersionKind(clusterinventory.GroupVersion.WithKind("ClusterProfile"))
	u.SetNamespace(profile.Namespace)
	u.SetName(profile.Name)
	return u, true
}

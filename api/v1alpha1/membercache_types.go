package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MemberCache is one cache in one member cluster. The hub writes its spec; the
// spoke controller writes its status. It is named <cachecluster>.<cluster> and
// owned by its CacheCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcache,categories=caches
// +kubebuilder:printcolumn:name="Cache",type=string,JSONPath=`.spec.cacheCluster`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type MemberCache struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemberCacheSpec `json:"spec"`
	// +optional
	Status MemberCacheStatus `json:"status,omitempty"`
}

// MemberCacheList is a list of MemberCaches.
// +kubebuilder:object:root=true
type MemberCacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCache `json:"items"`
}

// MemberCacheSpec is what one member shall hold.
type MemberCacheSpec struct {
	// CacheCluster is the name that the children carry.
	// +kubebuilder:validation:MaxLength=52
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cacheCluster is immutable"
	CacheCluster string `json:"cacheCluster"`

	// CacheClusterUID marks the children, together with the cluster. It stays what it
	// is when the CacheCluster is deleted with its MemberCaches orphaned.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cacheClusterUID is immutable"
	// +optional
	CacheClusterUID string `json:"cacheClusterUID,omitempty"`

	// Cluster is the member's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cluster is immutable"
	Cluster string `json:"cluster"`

	// Revision names the template.
	Revision string `json:"revision"`

	// Template after overrides.
	Template CacheTemplate `json:"template"`

	// CreateNamespace creates the namespace in a member that lacks it.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`

	// Policies of the CacheCluster.
	// +optional
	Policies Policies `json:"policies,omitempty"`
}

// MemberCacheStatus is what was observed in the member.
type MemberCacheStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State in one word.
	// +optional
	State MemberState `json:"state,omitempty"`

	// Conditions: Applied (the children are as the spec asks) and Ready (every
	// wanted pod is ready); Reconciling and Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Revision that the children carry.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas is the number of pods that exist.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	Outcome `json:",inline"`

	// ObservedAt is when the member was last seen to change.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`

	// Inventory of the children that were applied, sorted by kind and name.
	// +listType=atomic
	// +optional
	Inventory []InventoryEntry `json:"inventory,omitempty"`

	// LastDrift is the latest drift that was put right.
	// +optional
	LastDrift *Drift `json:"lastDrift,omitempty"`

	// OpenDrifts is what differs now and is not put back: under drift.policy Report,
	// or while another manager keeps changing it back. Sorted by object, at most 8.
	// +listType=atomic
	// +optional
	OpenDrifts []DriftFinding `json:"openDrifts,omitempty"`
}

// InventoryEntry is one child in the member, in the MemberCache's namespace.
type InventoryEntry struct {
	// +optional
	Group string    `json:"group,omitempty"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	UID   types.UID `json:"uid"`

	// Recreating: this child is deleted and created anew, because a field was changed
	// that cannot change in place and spec.recreate allows it. That it is gone for a
	// moment is no drift.
	// +optional
	Recreating bool `json:"recreating,omitempty"`
}

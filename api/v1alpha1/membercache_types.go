package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MemberCache is one cache in one member cluster. The hub writes its spec, the
// spoke controller writes its status. Its name is <cachecluster>.<cluster>, and its
// CacheCluster owns it.
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

// MemberCacheSpec is the desired state of one cache in one member.
type MemberCacheSpec struct {
	// CacheCluster is the name of the CacheCluster, and of the children in the member.
	// +kubebuilder:validation:MaxLength=52
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cacheCluster is immutable"
	CacheCluster string `json:"cacheCluster"`

	// CacheClusterUID is the UID of the CacheCluster. Together with cluster it is the
	// owner mark of the children. It does not change if the CacheCluster is deleted and
	// its MemberCaches are orphaned.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cacheClusterUID is immutable"
	// +optional
	CacheClusterUID string `json:"cacheClusterUID,omitempty"`

	// Cluster is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cluster is immutable"
	Cluster string `json:"cluster"`

	// Revision is a hash of the template after overrides.
	Revision string `json:"revision"`

	// Template is the template of the CacheCluster after overrides.
	Template CacheTemplate `json:"template"`

	// CreateNamespace creates the namespace in the member if it does not exist.
	// Default: false.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`

	// Policies are the policies of the CacheCluster.
	// +optional
	Policies Policies `json:"policies,omitempty"`
}

// MemberCacheStatus is the observed state of the cache in the member.
type MemberCacheStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State is the state of the cache in this member, in one word.
	// +optional
	State MemberState `json:"state,omitempty"`

	// Conditions are Applied (the children have the desired values) and Ready (every
	// desired pod is ready). Drifted, Reconciling and Stalled are present only while
	// they are True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Revision is the revision that was applied to the children.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas is the number of pods that exist in the member.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready pods in the member.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	Outcome `json:",inline"`

	// ObservedAt is the time of the last observed change in the member.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`

	// Inventory lists the applied children, sorted by kind and name.
	// +listType=atomic
	// +optional
	Inventory []InventoryEntry `json:"inventory,omitempty"`

	// LastDrift is the latest drift that was corrected in this member.
	// +optional
	LastDrift *Drift `json:"lastDrift,omitempty"`

	// OpenDrifts lists the remaining drift, sorted by object, at most 8 entries. Drift
	// remains under drift.policy Report, during a conflict with another controller, and
	// if the member refuses the correction.
	// +listType=atomic
	// +optional
	OpenDrifts []DriftFinding `json:"openDrifts,omitempty"`
}

// InventoryEntry is one child in the member, in the namespace of the MemberCache.
type InventoryEntry struct {
	// Group is the API group of the child; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind is the kind of the child, such as StatefulSet.
	Kind string `json:"kind"`

	// Name is the name of the child.
	Name string `json:"name"`

	// UID is the UID of the child in the member.
	UID types.UID `json:"uid"`

	// Recreating is true while this child is deleted and created again. An immutable
	// field changed, and spec.recreate allows it. The absence of the child is then not
	// drift.
	// +optional
	Recreating bool `json:"recreating,omitempty"`
}

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheCluster is one cache that runs in the member clusters that its placement
// selects. Its children in a member have its name and namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=cc,categories=caches
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: the revision label of the StatefulSet adds 11, and a label value has at most 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and contain only a-z, 0-9 and '-': it is the name of a Service in each member"
type CacheCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CacheClusterSpec `json:"spec"`
	// +optional
	Status CacheClusterStatus `json:"status,omitempty"`
}

// CacheClusterList is a list of CacheClusters.
// +kubebuilder:object:root=true
type CacheClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CacheCluster `json:"items"`
}

// CacheClusterSpec is the desired state: the cache, its placement, its overrides and
// its policies.
type CacheClusterSpec struct {
	CacheTemplate `json:",inline"`

	// Placement selects the member clusters.
	// +required
	Placement Placement `json:"placement"`

	// Overrides change the template for some members. If several overrides set the same
	// field for a member, the last one takes effect.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Overrides []Override `json:"overrides,omitempty"`

	Policies `json:",inline"`
}

// Placement selects member clusters by name, by label, or both.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) || has(self.clusterSelector)",message="placement must set clusters or clusterSelector; an empty clusterSelector {} selects every member"
type Placement struct {
	// Clusters lists names of members, in order of preference.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:MinLength=1
	// +listType=set
	// +optional
	Clusters []string `json:"clusters,omitempty"`

	// ClusterSelector selects members by the labels of their ClusterProfile. An empty
	// selector selects every member, an absent selector none.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// CreateNamespace creates the namespace of the CacheCluster in a member if it does
	// not exist there. The hub never deletes the namespace.
	// +kubebuilder:default=true
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}

// Override changes the template for the members that clusters or clusterSelector
// select.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) || has(self.clusterSelector)",message="an override must set clusters or clusterSelector; an empty clusterSelector {} selects every member"
type Override struct {
	// Clusters lists names of members.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Clusters []string `json:"clusters,omitempty"`

	// ClusterSelector selects members by the labels of their ClusterProfile.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Replicas is the number of cache pods in each of these members.
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="replicas must be 0 or more; 0 stops every pod and keeps the objects"
	// +kubebuilder:validation:XValidation:rule="self <= 1000",message="replicas must be at most 1000 in each member"
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Memory has no validation rules here: the API server refuses a CRD whose rules cost
	// too much, and these would run once for each override.

	// Memory is the size of the cache in each pod, such as 1Gi. The limits of
	// spec.memory apply: 8Mi to 4Ti. The hub checks them after admission, when it
	// applies the override to the template.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Version is the version of the engine. It selects the default image.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="version must be an image tag such as 1.6 or 1.6.39-alpine"
	// +optional
	Version string `json:"version,omitempty"`

	// Image is the image of the cache container.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^((([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="image must be a reference such as memcached:1.6.39 or mirror.example:5000/memcached@sha256:...: no scheme, no spaces, the repository in lower case"
	// +optional
	Image string `json:"image,omitempty"`

	// Memcached replaces each field of spec.memcached that it sets.
	// +optional
	Memcached *MemcachedSpec `json:"memcached,omitempty"`

	// Resources replaces each entry of spec.resources that it sets.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// CacheClusterStatus is the observed state in all members.
type CacheClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, Progressing, Degraded and Placed. Drifted, Abandoned, and
	// the kstatus conditions Reconciling and Stalled are present only while they apply.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Revision is a hash of the desired template.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas is the sum of the pods in all members, as last observed.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the sum of the ready pods in the reachable members.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector selects the pods in a member, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Members is the number of ready and of placed members, such as "2/3".
	// +optional
	Members string `json:"members,omitempty"`

	// Clusters has one entry for each member that is placed or still has children.
	// +listType=map
	// +listMapKey=name
	// +optional
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// Abandoned lists the members whose children are orphaned, as the annotation
	// cache.reconcile-lab.io/abandon requests. An entry is removed when the annotation
	// no longer names the member, or when the cache is placed there again.
	// +listType=map
	// +listMapKey=name
	// +optional
	Abandoned []AbandonedMember `json:"abandoned,omitempty"`
}

// AbandonedMember is a member with orphaned children.
type AbandonedMember struct {
	// Name is the name of the member.
	Name string `json:"name"`

	// Children lists the last known children in the member, as Kind/name, sorted.
	// +listType=atomic
	// +optional
	Children []string `json:"children,omitempty"`

	// At is the time at which the member was abandoned.
	At metav1.Time `json:"at"`
}

// MemberState is the state of a cache in a member, in one word.
// +kubebuilder:validation:Enum=Ready;Progressing;Degraded;Blocked;Unreachable;Deleting
type MemberState string

const (
	// MemberReady is the state of a member whose children have the desired values and
	// whose pods are all ready.
	MemberReady MemberState = "Ready"
	// MemberProgressing is the state of a member that moves towards the desired state.
	MemberProgressing MemberState = "Progressing"
	// MemberDegraded is the state of a member whose children have the desired values,
	// but whose pods fail.
	MemberDegraded MemberState = "Degraded"
	// MemberBlocked is the state of a member that is blocked until someone follows the
	// hint, or until the cause ends (see selfResolving).
	MemberBlocked MemberState = "Blocked"
	// MemberUnreachable is the state of a member that does not answer. Its current
	// state is unknown.
	MemberUnreachable MemberState = "Unreachable"
	// MemberDeleting is the state of a member whose children are being deleted.
	MemberDeleting MemberState = "Deleting"
)

// ErrorClass is the class of an error. It determines who has to act and when the hub
// retries.
// +kubebuilder:validation:Enum=Invalid;Blocked;Conflict;Unreachable;Transient
type ErrorClass string

// ClusterStatus is the observed state of the cache in one member.
type ClusterStatus struct {
	// Name is the name of the member.
	Name string `json:"name"`

	// State is the state of the cache in this member, in one word.
	State MemberState `json:"state"`

	// Revision is the revision that was applied to the children in this member.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas is the desired number of pods in this member.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready pods, as last observed.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	Outcome `json:",inline"`

	// ObservedAt is the time of the last observed change in the member.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`

	// LastDrift is the latest drift that was corrected in this member.
	// +optional
	LastDrift *Drift `json:"lastDrift,omitempty"`

	// OpenDrifts lists the remaining drift. Drift remains under drift.policy Report,
	// during a conflict with another controller, and if the member refuses the
	// correction.
	// +listType=atomic
	// +optional
	OpenDrifts []DriftFinding `json:"openDrifts,omitempty"`
}

// Outcome is the cause of the state of a member, and the remedy.
type Outcome struct {
	// Class is the class of the last error; empty without an error.
	// +optional
	Class ErrorClass `json:"class,omitempty"`

	// Reason is the cause in one CamelCase word, such as QuotaExceeded. docs/conditions.md
	// lists all reasons.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message describes the cause in one sentence, with object, field and value.
	// +optional
	Message string `json:"message,omitempty"`

	// Hint is the next action, with the command if there is one.
	// +optional
	Hint string `json:"hint,omitempty"`

	// SelfResolving is true if the member is Blocked and the cause ends without a
	// change of the spec or of the member. Examples are a namespace that is being
	// deleted and a conflict with another controller. A client that waits for Ready
	// continues to wait; it stops at a Blocked member for which this is false.
	// +optional
	SelfResolving bool `json:"selfResolving,omitempty"`

	// Attempt is the number of attempts since the class, the reason or the spec last
	// changed. It stops when the retry interval reaches its maximum. It is 0 if nothing
	// is retried, and for the reason ObjectOfAnother.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// RetryAt is the time of the next attempt; an event can cause an earlier one. It is
	// absent if only an event causes the next attempt, and after the retry interval
	// reached its maximum.
	// +optional
	RetryAt *metav1.Time `json:"retryAt,omitempty"`

	// Since is the time at which the state or the reason last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DriftFinding is the drift of one child: the fields, their values, and the field
// manager of the change.
type DriftFinding struct {
	// Object is the child as Kind/name, such as StatefulSet/sessions.
	Object string `json:"object"`

	// Fields lists paths of changed fields, such as spec.replicas, at most 10. It is
	// empty if the object was deleted.
	// +listType=atomic
	// +optional
	Fields []string `json:"fields,omitempty"`

	// OmittedFields is the number of further changed fields that fields does not list.
	// +optional
	OmittedFields int32 `json:"omittedFields,omitempty"`

	// Changes lists the values of the first few fields, for fields with a single value.
	// +listType=atomic
	// +optional
	Changes []FieldChange `json:"changes,omitempty"`

	// Deleted is true if the object was deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`

	// Foreign is true if another client added the fields to the pod template, and the
	// hub does not apply them.
	// +optional
	Foreign bool `json:"foreign,omitempty"`

	// Manager is the field manager of the change, such as kubectl-edit; with several
	// managers, the latest one. It is "unknown" for a removed field or a deleted object:
	// the API server records no manager for them.
	// +optional
	Manager string `json:"manager,omitempty"`

	// Operation is the recorded operation of the change, Apply or Update, with the
	// subresource if there was one, such as Update/scale.
	// +optional
	Operation string `json:"operation,omitempty"`

	// ChangedAt is the recorded time of the change.
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
}

// FieldChange is the applied and the observed value of one field.
type FieldChange struct {
	// Path is the path of the field, such as spec.replicas.
	Path string `json:"path"`

	// Was is the applied value, as JSON, cut after 100 characters.
	// +optional
	Was string `json:"was,omitempty"`

	// Is is the observed value, as JSON, cut after 100 characters. It is empty if the
	// field was removed.
	// +optional
	Is string `json:"is,omitempty"`

	// Manager is the field manager of this change. It is absent if it is the manager of
	// the finding.
	// +optional
	Manager string `json:"manager,omitempty"`
}

// FieldList returns the listed fields and the number of omitted fields as one text,
// such as "spec.replicas, spec.template and 3 more".
func (f *DriftFinding) FieldList() string {
	list := strings.Join(f.Fields, ", ")
	if f.OmittedFields > 0 {
		list += fmt.Sprintf(" and %d more", f.OmittedFields)
	}
	return list
}

// ManagerOf returns the field manager that changed a field.
func (f *DriftFinding) ManagerOf(field string) string {
	for i := range f.Changes {
		if c := &f.Changes[i]; c.Path == field && c.Manager != "" {
			return c.Manager
		}
	}
	return f.Manager
}

// Managers returns the field managers of all changes, that of the finding first.
func (f *DriftFinding) Managers() []string {
	all := []string{f.Manager}
	for i := range f.Changes {
		if manager := f.Changes[i].Manager; manager != "" && !slices.Contains(all, manager) {
			all = append(all, manager)
		}
	}
	return all
}

// Drift is the latest corrected drift of a child, and the number of corrections.
type Drift struct {
	DriftFinding `json:",inline"`

	// At is the time of the correction.
	At metav1.MicroTime `json:"at"`

	// RepairedIn is the duration of the correction, such as 11.2ms. It begins with the
	// event and ends with the response of the API server.
	RepairedIn metav1.Duration `json:"repairedIn"`

	// Count is the number of drifts that were corrected in this member.
	Count int64 `json:"count"`
}

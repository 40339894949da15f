package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheCluster is one cache that runs in the member clusters that its placement
// chooses. Its children in a member carry its name and namespace.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: the members' StatefulSet adds 11 for its revision label, which may have 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and hold only a-z, 0-9 and '-': it names a Service in every member"
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

// CacheClusterSpec is the cache, where it runs, and how members differ.
type CacheClusterSpec struct {
	CacheTemplate `json:",inline"`

	// Placement chooses the member clusters.
	// +required
	Placement Placement `json:"placement"`

	// Overrides change the template for some members; a later one wins over an
	// earlier one.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Overrides []Override `json:"overrides,omitempty"`

	Policies `json:",inline"`
}

// Placement chooses member clusters: those named and those selected.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) || has(self.clusterSelector)",message="placement must name clusters or hold a clusterSelector; an empty clusterSelector {} means every member"
type Placement struct {
	// Clusters names members, in order of preference.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:MinLength=1
	// +listType=set
	// +optional
	Clusters []string `json:"clusters,omitempty"`

	// ClusterSelector selects members by the labels of their ClusterProfile. An
	// empty one selects every member, an absent one none.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// CreateNamespace creates the CacheCluster's namespace in a member that lacks
	// it. It is never deleted again.
	// +kubebuilder:default=true
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}

// Override changes the template for the members that it names or selects.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) || has(self.clusterSelector)",message="an override must name clusters or hold a clusterSelector; an empty clusterSelector {} means every member"
type Override struct {
	// Clusters names members.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Clusters []string `json:"clusters,omitempty"`

	// ClusterSelector selects members by the labels of their ClusterProfile.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Replicas in each of these members.
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="replicas must be 0 or more; 0 stops every pod and keeps the objects"
	// +kubebuilder:validation:XValidation:rule="self <= 1000",message="replicas must be at most 1000 in each member"
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Memory of the cache in each pod. The limits of spec.memory hold here too;
	// they are checked when the override meets its template, since an API server
	// refuses a schema with rules that may run once for each of many overrides.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Version picks the default image.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="version must be an image tag such as 1.6 or 1.6.39-alpine"
	// +optional
	Version string `json:"version,omitempty"`

	// Image of the cache container.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^((([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="image must be a reference such as memcached:1.6.39 or mirror.example:5000/memcached@sha256:...: no scheme, no spaces, the repository in lower case"
	// +optional
	Image string `json:"image,omitempty"`

	// Memcached replaces the fields that it sets.
	// +optional
	Memcached *MemcachedSpec `json:"memcached,omitempty"`

	// Resources replaces the entries that it sets.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// CacheClusterStatus is what was observed in the members.
type CacheClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Progressing, Degraded and Placed always; Reconciling and
	// Stalled while they are true, as kstatus reads them.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Revision names the template that members are to run.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas is the number of pods that exist in all members together, as last
	// reported.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready pods in the members that are reachable.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector selects the pods in a member, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Members is ready/placed, such as "2/3".
	// +optional
	Members string `json:"members,omitempty"`

	// Clusters holds one entry for each member that is placed or still holds
	// children.
	// +listType=map
	// +listMapKey=name
	// +optional
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// Abandoned lists the members in which children were left behind because the
	// annotation cache.reconcile-lab.io/abandon said so. An entry goes when the
	// annotation does not name the member any more, or when the cache is placed there
	// again.
	// +listType=map
	// +listMapKey=name
	// +optional
	Abandoned []AbandonedMember `json:"abandoned,omitempty"`
}

// AbandonedMember is a member in which children were left behind.
type AbandonedMember struct {
	// Name of the member.
	Name string `json:"name"`

	// Children that were last known to be there, as Kind/name, sorted.
	// +listType=atomic
	// +optional
	Children []string `json:"children,omitempty"`

	// At is when they were let go.
	At metav1.Time `json:"at"`
}

// MemberState is the one word for a cache in a member.
// +kubebuilder:validation:Enum=Ready;Progressing;Degraded;Blocked;Unreachable;Deleting
type MemberState string

const (
	// MemberReady: the children are as desired and every wanted pod is ready.
	MemberReady MemberState = "Ready"
	// MemberProgressing: moving towards the desired state.
	MemberProgressing MemberState = "Progressing"
	// MemberDegraded: the children are as desired, but pods fail.
	MemberDegraded MemberState = "Degraded"
	// MemberBlocked: nothing moves until somebody does what the hint says.
	MemberBlocked MemberState = "Blocked"
	// MemberUnreachable: the member does not answer, so nothing is known.
	MemberUnreachable MemberState = "Unreachable"
	// MemberDeleting: the children are being removed.
	MemberDeleting MemberState = "Deleting"
)

// ErrorClass says who has to act on the last error and when it is tried again.
// +kubebuilder:validation:Enum=Invalid;Blocked;Conflict;Unreachable;Transient
type ErrorClass string

// ClusterStatus is the cache in one member.
type ClusterStatus struct {
	// Name of the member.
	Name string `json:"name"`

	// State in one word.
	State MemberState `json:"state"`

	// Revision that the member's children carry.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Replicas wanted in this member.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas as last observed.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	Outcome `json:",inline"`

	// ObservedAt is when the member was last seen to change.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`

	// LastDrift is the latest drift that was put right here.
	// +optional
	LastDrift *Drift `json:"lastDrift,omitempty"`

	// OpenDrifts is what differs now and is not put back: under drift.policy Report,
	// or while another manager keeps changing it back.
	// +listType=atomic
	// +optional
	OpenDrifts []DriftFinding `json:"openDrifts,omitempty"`
}

// Outcome is why a member is in its state, and what to do.
type Outcome struct {
	// Class of the last error; empty when there is none.
	// +optional
	Class ErrorClass `json:"class,omitempty"`

	// Reason in one CamelCase word, from a documented list.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`

	// Hint says what to do, with the command where there is one.
	// +optional
	Hint string `json:"hint,omitempty"`

	// SelfResolving is true when the member is blocked but the cause ends without a
	// change of the spec or of the member: an object, namespace or MemberCache that is
	// being deleted, or a conflict with another controller. A client that waits for
	// Ready keeps waiting; it gives up on a blocked member where this is false.
	// +optional
	SelfResolving bool `json:"selfResolving,omitempty"`

	// Attempt counts the tries since the class and reason last changed, as far as
	// they had come when this was written, until the waits between them grow no more;
	// 0 where nothing is tried again, and for somebody else's object, which is only
	// looked at.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// RetryAt is when the next try is due, unless an event brings it forward; absent
	// where only an event does, and once the waits grow no more: then each comes after
	// the longest wait of its class, and is not told of.
	// +optional
	RetryAt *metav1.Time `json:"retryAt,omitempty"`

	// Since is when the member entered its present state for this reason.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DriftFinding is how one child differs from what was applied, and who did it.
type DriftFinding struct {
	// Object is Kind/name of the child.
	Object string `json:"object"`

	// Fields that had changed, such as spec.replicas; empty when the object had
	// been deleted.
	// +listType=atomic
	// +optional
	Fields []string `json:"fields,omitempty"`

	// OmittedFields is the number of further fields that differ and are not named in
	// fields, which holds at most 10.
	// +optional
	OmittedFields int32 `json:"omittedFields,omitempty"`

	// Changes are the values of these fields, of the first few and those that are
	// single values.
	// +listType=atomic
	// +optional
	Changes []FieldChange `json:"changes,omitempty"`

	// Deleted says that the whole object had been deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`

	// Foreign says that the fields were added to the pod template and are not part
	// of what was applied.
	// +optional
	Foreign bool `json:"foreign,omitempty"`

	// Manager is the field manager that made the change, the last one where there were
	// several, such as kubectl-edit; "unknown" where the API server keeps no trace of it (a removed field, a
	// deleted object).
	// +optional
	Manager string `json:"manager,omitempty"`

	// Operation is how the manager made it, Apply or Update, as the API server
	// recorded it, with the subresource where there was one, such as Update/scale.
	// +optional
	Operation string `json:"operation,omitempty"`

	// ChangedAt is when the manager made it, as the API server recorded it.
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
}

// FieldChange is one field that drifted.
type FieldChange struct {
	// Path of the field, such as spec.replicas.
	Path string `json:"path"`

	// Was is the value that had been applied, as JSON; cut after 100 characters.
	// +optional
	Was string `json:"was,omitempty"`

	// Is is the value that was found, as JSON; cut after 100 characters, and empty
	// where the field was gone.
	// +optional
	Is string `json:"is,omitempty"`

	// Manager is who changed this field, where that is another one than the manager of
	// the finding.
	// +optional
	Manager string `json:"manager,omitempty"`
}

// FieldList returns the named fields and the number of the omitted ones as one text,
// such as "spec.replicas, spec.template and 3 more".
func (f *DriftFinding) FieldList() string {
	list := strings.Join(f.Fields, ", ")
	if f.OmittedFields > 0 {
		list += fmt.Sprintf(" and %d more", f.OmittedFields)
	}
	return list
}

// ManagerOf gives who changed one of the fields.
func (f *DriftFinding) ManagerOf(field string) string {
	for i := range f.Changes {
		if c := &f.Changes[i]; c.Path == field && c.Manager != "" {
			return c.Manager
		}
	}
	return f.Manager
}

// Managers are all who made the changes, that of the finding first.
func (f *DriftFinding) Managers() []string {
	all := []string{f.Manager}
	for i := range f.Changes {
		if who := f.Changes[i].Manager; who != "" && !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	return all
}

// Drift is a change of a child that somebody else made and that was put right.
type Drift struct {
	DriftFinding `json:",inline"`

	// At is when it was put right.
	At metav1.MicroTime `json:"at"`

	// RepairedIn is the time from the arrival of the event to the API server's
	// answer that the object is right again.
	RepairedIn metav1.Duration `json:"repairedIn"`

	// Count of drifts that were put right in this member.
	Count int64 `json:"count"`
}

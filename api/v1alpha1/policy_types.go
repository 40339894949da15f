package v1alpha1

// Policies are the rules for drift, for existing objects, for immutable fields and
// for deletion.
type Policies struct {
	// Drift is the policy for changes of a child by other clients.
	// +optional
	Drift *DriftPolicy `json:"drift,omitempty"`

	// Takeover is the policy for an existing object that has the name of a child and
	// no owner mark. Never: do not change the object. IfMatching: take it over if its
	// spec has the desired values. Always: take it over and write the desired values.
	// An object of another CacheCluster or another hub is never taken over.
	// +kubebuilder:default=Never
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Recreate is the consent to delete and create a child if an immutable field
	// changed. Never: the member is Blocked. OrphanPods: recreate the StatefulSet and
	// keep its pods running; a Service is deleted and created.
	// +kubebuilder:default=Never
	// +optional
	Recreate Recreate `json:"recreate,omitempty"`

	// Deletion is the policy for the children of a CacheCluster that is deleted, or no
	// longer placed in a member.
	// +optional
	Deletion *DeletionPolicy `json:"deletion,omitempty"`
}

// DriftPolicy is the policy for changes of a child by other clients.
type DriftPolicy struct {
	// Policy is the action on drift. Correct: write the desired values, and recreate a
	// deleted child. Report: write nothing, and report the drift in the condition
	// Drifted, in openDrifts and in events.
	// +kubebuilder:default=Correct
	// +optional
	Policy DriftAction `json:"policy,omitempty"`

	// Foreign is the action on fields that other clients add to the pod template, such
	// as a sidecar. Keep: keep them. Report: keep them, and report them in the
	// condition Drifted. Remove: remove them. The annotation of kubectl rollout restart
	// and fields outside the pod template always stay.
	// +kubebuilder:default=Keep
	// +optional
	Foreign ForeignAction `json:"foreign,omitempty"`

	// Ignore lists rules for changes that the hub neither corrects nor reports.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftIgnore matches changes by kind, path and field manager. An omitted field
// matches everything.
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.manager)",message="an ignore rule must set path or manager; to correct no drift at all, set drift.policy: Report"
type DriftIgnore struct {
	// Kind is the kind of the child: Service, StatefulSet or PodDisruptionBudget.
	// +kubebuilder:validation:Enum=Service;StatefulSet;PodDisruptionBudget
	// +optional
	Kind string `json:"kind,omitempty"`

	// Path is the path of a field. It includes all fields below that field. Copy it
	// from status.clusters[].lastDrift.fields, for example spec.replicas or
	// spec.template.spec.containers[name="memcached"].image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Path string `json:"path,omitempty"`

	// Manager is the field manager of the change, such as kubectl-edit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Manager string `json:"manager,omitempty"`
}

// DriftAction is an action on drift.
// +kubebuilder:validation:Enum=Correct;Report
type DriftAction string

// The actions on drift.
const (
	DriftCorrect DriftAction = "Correct"
	DriftReport  DriftAction = "Report"
)

// ForeignAction is an action on fields that other clients add to the pod template.
// +kubebuilder:validation:Enum=Keep;Report;Remove
type ForeignAction string

// The actions on foreign fields.
const (
	ForeignKeep   ForeignAction = "Keep"
	ForeignReport ForeignAction = "Report"
	ForeignRemove ForeignAction = "Remove"
)

// Takeover is a policy for existing objects.
// +kubebuilder:validation:Enum=Never;IfMatching;Always
type Takeover string

// The policies for existing objects.
const (
	TakeoverNever      Takeover = "Never"
	TakeoverIfMatching Takeover = "IfMatching"
	TakeoverAlways     Takeover = "Always"
)

// Recreate is the consent to delete and create a child.
// +kubebuilder:validation:Enum=Never;OrphanPods
type Recreate string

// The consents.
const (
	RecreateNever      Recreate = "Never"
	RecreateOrphanPods Recreate = "OrphanPods"
)

// DeletionPolicy is the policy for the children at deletion.
type DeletionPolicy struct {
	// Policy is the action on the children. Delete: delete them, the StatefulSet and
	// its pods first. Orphan: keep them running in the member, and remove their owner
	// marks.
	// +kubebuilder:default=Delete
	// +optional
	Policy DeletionAction `json:"policy,omitempty"`
}

// DeletionAction is an action on the children at deletion.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionAction string

// The actions at deletion.
const (
	DeletionDelete DeletionAction = "Delete"
	DeletionOrphan DeletionAction = "Orphan"
)

// Correct reports whether drift is corrected.
func (p *Policies) Correct() bool { return p.Drift == nil || p.Drift.Policy != DriftReport }

// Foreign returns the action on fields that other clients add to the pod template.
func (p *Policies) Foreign() ForeignAction {
	if p.Drift == nil || p.Drift.Foreign == "" {
		return ForeignKeep
	}
	return p.Drift.Foreign
}

// Ignored returns the ignore rules.
func (p *Policies) Ignored() []DriftIgnore {
	if p.Drift == nil {
		return nil
	}
	return p.Drift.Ignore
}

// Orphan reports whether the children stay in the member at deletion.
func (p *Policies) Orphan() bool { return p.Deletion != nil && p.Deletion.Policy == DeletionOrphan }

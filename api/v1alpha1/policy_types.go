package v1alpha1

// Policies say what the hub may do in a member beyond keeping the children as the
// template asks.
type Policies struct {
	// Drift says what happens when somebody else changes a child.
	// +optional
	Drift *DriftPolicy `json:"drift,omitempty"`

	// Takeover says what happens where an object of a child's name exists already
	// and was not made for this CacheCluster: Never leaves it alone, IfMatching takes
	// it over if its spec is what the child's would be, Always makes it so. What
	// another CacheCluster or another hub made is never taken over.
	// +kubebuilder:default=Never
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Recreate is the consent to delete and create a child whose field cannot be
	// changed in place. OrphanPods recreates the StatefulSet around its running pods,
	// none of which restarts for that; a Service is deleted and created.
	// +kubebuilder:default=Never
	// +optional
	Recreate Recreate `json:"recreate,omitempty"`

	// Deletion says what becomes of the children when the CacheCluster is deleted or
	// no longer placed in a member.
	// +optional
	Deletion *DeletionPolicy `json:"deletion,omitempty"`
}

// DriftPolicy says what happens when somebody else changes a child.
type DriftPolicy struct {
	// Policy Correct puts back what drifts; Report writes nothing and says what
	// drifted in the condition Drifted and in events. A child that was deleted is
	// created again under Correct only.
	// +kubebuilder:default=Correct
	// +optional
	Policy DriftAction `json:"policy,omitempty"`

	// Foreign says what happens to fields that others add inside the pod template,
	// such as an injected sidecar: Keep leaves them, Report says so in the condition
	// Drifted, Remove removes them. The annotation of kubectl rollout restart and
	// everything outside the pod template always stay.
	// +kubebuilder:default=Keep
	// +optional
	Foreign ForeignAction `json:"foreign,omitempty"`

	// Ignore lists changes that are nobody's business: they are neither put back nor
	// reported.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftIgnore matches changes by kind, path and manager; what is left out matches
// everything.
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.manager)",message="an ignore rule must name a path or a manager; to correct nothing at all set drift.policy: Report"
type DriftIgnore struct {
	// Kind of the child: Service, StatefulSet or PodDisruptionBudget.
	// +kubebuilder:validation:Enum=Service;StatefulSet;PodDisruptionBudget
	// +optional
	Kind string `json:"kind,omitempty"`

	// Path of a field and everything below it, as status.clusters[].lastDrift.fields
	// shows it, such as spec.replicas or spec.template.spec.containers[name="memcached"].image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Path string `json:"path,omitempty"`

	// Manager is the field manager that made the change, such as kubectl-edit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Manager string `json:"manager,omitempty"`
}

// DriftAction is what happens to drift.
// +kubebuilder:validation:Enum=Correct;Report
type DriftAction string

// The actions on drift.
const (
	DriftCorrect DriftAction = "Correct"
	DriftReport  DriftAction = "Report"
)

// ForeignAction is what happens to fields that others add to the pod template.
// +kubebuilder:validation:Enum=Keep;Report;Remove
type ForeignAction string

// The actions on foreign fields.
const (
	ForeignKeep   ForeignAction = "Keep"
	ForeignReport ForeignAction = "Report"
	ForeignRemove ForeignAction = "Remove"
)

// Takeover is what happens to an object that was there before.
// +kubebuilder:validation:Enum=Never;IfMatching;Always
type Takeover string

// The takeovers.
const (
	TakeoverNever      Takeover = "Never"
	TakeoverIfMatching Takeover = "IfMatching"
	TakeoverAlways     Takeover = "Always"
)

// Recreate is the consent to replace a child.
// +kubebuilder:validation:Enum=Never;OrphanPods
type Recreate string

// The consents.
const (
	RecreateNever      Recreate = "Never"
	RecreateOrphanPods Recreate = "OrphanPods"
)

// DeletionPolicy says what becomes of the children.
type DeletionPolicy struct {
	// Policy Delete removes them, the StatefulSet and its pods first; Orphan leaves
	// them running in the member, without the marks by which the hub knows them.
	// +kubebuilder:default=Delete
	// +optional
	Policy DeletionAction `json:"policy,omitempty"`
}

// DeletionAction is what becomes of the children.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionAction string

// The actions at deletion.
const (
	DeletionDelete DeletionAction = "Delete"
	DeletionOrphan DeletionAction = "Orphan"
)

// Correct says whether drift is put back.
func (p *Policies) Correct() bool { return p.Drift == nil || p.Drift.Policy != DriftReport }

// Foreign is the action on fields that others add to the pod template.
func (p *Policies) Foreign() ForeignAction {
	if p.Drift == nil || p.Drift.Foreign == "" {
		return ForeignKeep
	}
	return p.Drift.Foreign
}

// Ignored are the rules for changes that are nobody's business.
func (p *Policies) Ignored() []DriftIgnore {
	if p.Drift == nil {
		return nil
	}
	return p.Drift.Ignore
}

// Orphan says whether children stay in the member at deletion.
func (p *Policies) Orphan() bool { return p.Deletion != nil && p.Deletion.Policy == DeletionOrphan }

package apply

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Key identifies a child within the namespace of its MemberCache.
type Key struct {
	Kind schema.GroupVersionKind
	Name string
}

// String returns the kind and the name, such as StatefulSet/sessions.
func (k Key) String() string { return k.Kind.Kind + "/" + k.Name }

// Desired is one desired child.
type Desired struct {
	render.Child
	// Fields are the fields that the hub owns after the intent is applied. They are shared
	// and must not be changed.
	Fields *drift.Fields

	typer drift.Typer
}

// Key returns the key of the child.
func (d *Desired) Key() Key {
	return Key{Kind: d.Intent.GroupVersionKind(), Name: d.Intent.GetName()}
}

// NewDesired returns the desired children with the fields that the hub owns of each.
func NewDesired(t drift.Typer, children []render.Child) ([]Desired, error) {
	desired := make([]Desired, 0, len(children))
	for _, child := range children {
		fields, err := drift.IntentFields(t, child.Intent)
		if err != nil {
			return nil, err
		}
		desired = append(desired, Desired{Child: child, Fields: drift.Shared(fields), typer: t})
	}
	return desired, nil
}

// Live holds the objects in the member that carry the labels of a cache, by key. The
// objects may be shared with an informer cache: no stage may change them, nor what refers
// to them, such as Step.Live and Change.Found.
type Live map[Key]metav1.Object

// Action is what a step does with a child.
type Action string

// The actions of a plan.
const (
	// None leaves a child unchanged, because it is as desired.
	None Action = "none"
	// Create creates a child that is absent.
	Create Action = "create"
	// Update applies an intent that changed.
	Update Action = "update"
	// Correct writes the desired values over drift.
	Correct Action = "correct"
	// RemoveForeign removes the fields that other field managers added to the pod template.
	RemoveForeign Action = "remove foreign fields"
	// ReportOnly reports drift and does not correct it.
	ReportOnly Action = "report only"
	// TakeOver applies the intent to an existing object that has no owner.
	TakeOver Action = "take over"
	// Recreate deletes a child with a changed immutable field, and creates it again. The
	// pods of a StatefulSet stay.
	Recreate Action = "recreate"
	// Wait writes nothing until the failure of the step has passed.
	Wait Action = "wait"
	// Refuse writes nothing, because the object belongs to another owner.
	Refuse Action = "refuse"
	// Prune deletes a child that is no longer desired.
	Prune Action = "prune"
	// Delete deletes a child of a MemberCache that is being deleted.
	Delete Action = "delete"
	// Release removes the hub's marks from a child that stays.
	Release Action = "release"
)

// Step is the decision for one child.
type Step struct {
	// Desired is what is applied: immutable fields have their live values, and fields that
	// an ignore rule covers are absent.
	Desired
	Action Action
	// Drift is the difference between the intent and the live object.
	Drift drift.Finding
	// Foreign are the fields that other field managers added to the pod template and that
	// no rule allows.
	Foreign *drift.Fields
	// Deferred is true where the conflict breaker delays the correction.
	Deferred bool
	// Live is the live object, or nil.
	Live metav1.Object
	// Deleted is true where the inventory lists the child and the member does not hold it.
	Deleted bool
	// Failure is the reason for Wait and Refuse, and for a Recreate that cannot start yet.
	Failure *failure.Failure
	// Retained names the immutable fields that keep their live values, or is nil.
	Retained *failure.Failure
	// Recreating is true where the inventory notes that this child is being recreated.
	Recreating bool

	// unguarded is true where the member does not accept absentVersion.
	unguarded bool
	// learned is what earlier writes to the live object taught.
	learned Learned
	// original is the desired child before retained values and ignore rules.
	original Desired
}

// Plan holds the decisions for the children of one MemberCache in one member.
type Plan struct {
	Owner Owner
	Steps []Step
	// Prune holds the children of this owner that are no longer desired, sorted by key.
	Prune []Target
	// Initial is true where the member holds no child of this owner. Such a plan is
	// executed completely or not at all.
	Initial bool
	// Blocked is true where a preflight check of an initial plan failed. Execute then
	// writes nothing.
	Blocked bool
}

// Target is an object to be removed.
type Target struct {
	Key Key
	UID types.UID
	// Deleting is true where the API server is already deleting the object.
	Deleting bool
}

// first returns the index of the step that an initial plan executes before the others: the
// StatefulSet, or -1.
func (p *Plan) first() int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return s.Key().Kind == children.StatefulSetKind })
}

// String returns the plan as a table: one line per step with its action, object, and the
// fields or the reason.
func (p Plan) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACTION\tOBJECT\tDETAIL")
	for i := range p.Steps {
		step := &p.Steps[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", step.Action, step.Key(), step.detail())
	}
	for _, target := range p.Prune {
		fmt.Fprintf(table, "%s\t%s\t%s\n", Prune, target.Key, "not desired")
	}
	// Writes to a strings.Builder do not fail.
	_ = table.Flush()
	if p.Blocked {
		text.WriteString("blocked: a preflight check failed, nothing is written\n")
	}
	return text.String()
}

// detail returns the fields that a step changes, or the reason why it changes none.
func (s *Step) detail() string {
	var parts []string
	if fields := s.fieldList(); fields != "" {
		parts = append(parts, fields)
	}
	switch {
	case s.Failure != nil:
		parts = append(parts, s.Failure.Reason+": "+s.Failure.Message)
	case s.Deleted:
		parts = append(parts, "deleted in the member")
	case s.Drift.IntentChanged:
		parts = append(parts, "the intent changed")
	}
	if s.Deferred {
		parts = append(parts, "deferred by the conflict breaker")
	}
	if s.Retained != nil {
		parts = append(parts, s.Retained.Reason+": "+s.Retained.Message)
	}
	return strings.Join(parts, "; ")
}

// changedFields returns the fields that a step corrects, removes or reports, or nil.
func (s *Step) changedFields() *drift.Fields {
	if s.Action == RemoveForeign {
		return s.Foreign
	}
	return s.Drift.Fields
}

// fieldList returns the changed fields as one text, or an empty one.
func (s *Step) fieldList() string {
	var changed v1alpha1.DriftFinding
	changed.Fields, changed.OmittedFields = drift.Paths(s.changedFields())
	return changed.FieldList()
}

// wait returns the step as one that waits for a failure to pass.
func (s *Step) wait(f *failure.Failure) Step {
	waiting := *s
	waiting.Action, waiting.Failure = Wait, f
	return waiting
}

// corrects reports whether a step reverts a change of another client.
func (s *Step) corrects() bool {
	return s.Action == Correct || s.Action == RemoveForeign || s.Action == Create && s.Deleted
}

// reclaims reports whether the fields that drifted have the desired values, and only their
// field manager is another one.
func (s *Step) reclaims() bool {
	return s.Drift.Fields != nil && drift.ChangedFields(s.Intent, s.Live, s.Drift.Fields).Empty()
}

// hasForeign reports whether the pod template has foreign fields.
func (s *Step) hasForeign() bool { return s.Foreign != nil && !s.Foreign.Empty() }

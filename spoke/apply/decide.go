package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Memory holds what earlier writes taught about live objects, by UID. It is a value:
// WriteCache.Memory returns it, and Decide only reads it.
type Memory map[types.UID]Learned

// Learned is what the writes to one object taught. Its loss costs one write that changes
// nothing.
type Learned struct {
	// Hash is the hash of the intent that was applied. Unowned are the fields of that intent
	// that the member did not record under the hub's field manager.
	Hash    string
	Unowned *drift.Fields
	// Foreign are the foreign fields that the API server set again after they were removed,
	// because it has a default for them.
	Foreign *drift.Fields
}

// unowned returns the fields that the member never records for an intent, or nil.
func (l *Learned) unowned(hash string) *drift.Fields {
	if l.Hash != hash {
		return nil
	}
	return l.Unowned
}

// Decide returns the plan for the desired children. It is pure, and the order of live has
// no influence on the result.
func Decide(desired []Desired, live Live, owner Owner, memory Memory) Plan {
	plan := Plan{Owner: owner, Initial: len(owner.Inventory) == 0}
	keys := map[Key]bool{}
	for i := range desired {
		key := desired[i].Key()
		keys[key] = true
		step := decide(desired[i], live[key], &owner, memory)
		plan.Steps = append(plan.Steps, step)
		plan.Initial = plan.Initial && !step.ownsLive()
	}
	for _, target := range Targets(live, owner) {
		if !keys[target.Key] {
			plan.Prune = append(plan.Prune, target)
		}
	}
	return plan
}

// ownsLive reports whether the live object of a step is a child of this owner that stays.
func (s *Step) ownsLive() bool {
	switch s.Action {
	case None, Update, Correct, RemoveForeign, ReportOnly, Recreate:
		return true
	}
	return false
}

// decide returns the step for one desired child.
func decide(d Desired, live metav1.Object, owner *Owner, memory Memory) Step {
	noted, known := owner.entry(d.Key())
	step := Step{Desired: d, Live: live, Recreating: noted.Recreating, original: d}
	if live == nil {
		step.Action, step.Deleted = Create, known && !noted.Recreating
		if step.Deleted && owner.DriftPolicy.Report {
			step.Action = ReportOnly
		}
		return step
	}
	var immutable []immutableChange
	step.learned = memory[live.GetUID()]
	step.Desired, immutable = retainImmutable(d, live)
	switch {
	case !owner.ownsMarked(live):
		step.decideTakeover(owner, immutable)
	case live.GetDeletionTimestamp() != nil && noted.Recreating:
		step.Action, step.Failure = Wait, recreating(d.Key())
	case live.GetDeletionTimestamp() != nil:
		step.Action, step.Failure = Wait, terminating(d.Key())
	case owner.mayRecreate(immutable):
		step.Desired, step.Action, step.Failure = d, Recreate, recreating(d.Key())
	default:
		step.Retained = retainedFailure(d.Key(), live.GetNamespace(), immutable)
		step.decideDrift(owner)
	}
	return step
}

// decideDrift chooses the action for a live object of this owner.
func (s *Step) decideDrift(owner *Owner) {
	policy := &owner.DriftPolicy
	s.Foreign = policy.ForeignFields(s.Intent.GetKind(), s.Fields, s.Live)
	if s.learned.Foreign != nil && s.Foreign != nil {
		s.Foreign = s.Foreign.Difference(s.learned.Foreign)
	}
	if err := s.omitIgnored(owner); err != nil {
		s.Action, s.Failure = Wait, failure.Of(err, "read", s.Key().String())
		return
	}
	s.Drift = drift.Diff(s.Fields, s.Hash, s.Live, s.learned.unowned(s.Hash))
	if _, _, mutated := s.mutatedReplicas(s.Live, policy); mutated && s.Drift.Clean() {
		s.Drift.Fields = drift.NewFields(replicas)
	}
	switch {
	case s.Drift.Clean() && s.hasForeign() && policy.Foreign == v1alpha1.ForeignRemove && !policy.Report:
		s.Action = RemoveForeign
	case s.Drift.Clean():
		s.Action = None
	case s.Drift.IntentChanged || policy.Report && owner.IntentChanged && s.Drift.IntentHashDrifted():
		s.Action = Update
	case policy.Report && s.reclaims():
		s.Action = None
	case policy.Report:
		s.Action = ReportOnly
	default:
		s.Action = Correct
	}
}

// omitIgnored removes the fields from the intent that an ignore rule allows another field
// manager to own.
func (s *Step) omitIgnored(owner *Owner) error {
	ignored := owner.DriftPolicy.IgnoredFields(s.Intent.GetKind(), s.Fields, s.Live)
	if ignored.Empty() {
		return nil
	}
	intent, err := drift.RemoveFields(owner.Typer, s.Intent, ignored)
	if err != nil {
		return err
	}
	fields, err := drift.IntentFields(owner.Typer, intent)
	if err != nil {
		return err
	}
	// Retained fields are absent from s.Fields and must stay absent.
	s.Intent, s.Fields = intent, fields.Intersection(s.Fields)
	return nil
}

// terminating returns the failure of a child that is being deleted.
func terminating(key Key) *failure.Failure {
	return &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonChildrenTerminating,
		Message: fmt.Sprintf("%s is being deleted in the member; it is created again after that", key)}
}

package drift

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/fieldpattern"
)

// Policy is what to do about drift of the children of one MemberCache. The zero
// value corrects all of it.
type Policy struct {
	// Report writes nothing for drift.
	Report bool
	// Foreign is what happens to fields that others add to the pod template.
	Foreign v1alpha1.ForeignAction
	// Ignore are rules for fields that whoever holds them may keep.
	Ignore []Rule
	// Scalers are the autoscalers of the StatefulSet.
	Scalers []Range
}

// Rule says which fields may be kept by which manager; what is empty matches all.
type Rule struct {
	Kind, Path, Manager string
}

// Problem is a rule that can't be read: which one, its path, and why.
type Problem struct {
	Index int
	Path  string
	Err   error
}

// NewPolicy reads the drift part of policies, and says which rules it can't read.
func NewPolicy(p *v1alpha1.Policies) (Policy, []Problem) {
	policy := Policy{Report: !p.Correct(), Foreign: p.Foreign()}
	var problems []Problem
	for i, ignore := range p.Ignored() {
		rule := Rule{Kind: ignore.Kind, Path: ignore.Path, Manager: ignore.Manager}
		if ignore.Path != "" {
			var err error
			if rule.Path, err = fieldpattern.Parse(ignore.Path); err != nil {
				problems = append(problems, Problem{Index: i, Path: ignore.Path, Err: err})
				continue
			}
		}
		policy.Ignore = append(policy.Ignore, rule)
	}
	return policy, problems
}

func (r *Rule) matches(kind, manager string, field fieldpath.Path) bool {
	return (r.Kind == "" || r.Kind == kind) && (r.Manager == "" || r.Manager == manager) &&
		(r.Path == "" || fieldpattern.Covers(r.Path, field))
}

// Ignores says that a rule lets everybody have a field.
func (p *Policy) Ignores(kind string, field fieldpath.Path) bool {
	return p.ignores(kind, Unknown, field)
}

func (p *Policy) ignores(kind, manager string, field fieldpath.Path) bool {
	for i := range p.Ignore {
		if p.Ignore[i].matches(kind, manager, field) {
			return true
		}
	}
	return false
}

// IgnoredFields gives the fields of the intent that are left to whoever else holds them in
// the live object: those of an ignore rule, and the replicas while they are within
// what an autoscaler may set. A field that nobody else holds is ours
// again, as is one whose rule is gone.
func (p *Policy) IgnoredFields(kind string, wanted *Fields, live metav1.Object) *Fields {
	yielded := fieldpath.NewSet()
	scaled := p.scaled(kind, live)
	if len(p.Ignore) == 0 && !scaled {
		return yielded
	}
	entries := live.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if isOurs(e) {
			continue
		}
		fieldsOf(e).Intersection(wanted).Iterate(func(field fieldpath.Path) {
			if mayYield(field) && (p.ignores(kind, e.Manager, field) || scaled && field.Equals(replicasPath)) {
				yielded.Insert(field.Copy())
			}
		})
	}
	return yielded
}

// mayYield keeps what an intent can't do without: a list item with its keys, the
// marks by which the hub knows its own children again, and the label by which it
// watches them.
func mayYield(field fieldpath.Path) bool {
	last := field[len(field)-1]
	if last.FieldName == nil {
		return false
	}
	if len(field) > 1 && field[len(field)-2].Key != nil {
		for _, key := range *field[len(field)-2].Key {
			if key.Name == *last.FieldName {
				return false
			}
		}
	}
	return !marks.Has(field)
}

var marks = fieldpath.NewSet(intentMark,
	fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner),
	fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelCacheCluster))

// RemoveFields is an intent without the given fields.
func RemoveFields(t Typer, intent *unstructured.Unstructured, fields *Fields) (*unstructured.Unstructured, error) {
	value, err := t.ObjectToTyped(intent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s by its schema: %w", intent.GetKind(), intent.GetName(), err)
	}
	left, ok := value.RemoveItems(fields).AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("nothing is left of %s %s", intent.GetKind(), intent.GetName())
	}
	// What was not removed is shared with the intent.
	u := (&unstructured.Unstructured{Object: left}).DeepCopy()
	dropEmpty(u.Object)
	return u, nil
}

// dropEmpty removes what the removal left without content, and says whether in is one
// of these: an apply of null or of {} would own the field and clear it. What was
// empty before stays.
func dropEmpty(in any) (emptied bool) {
	switch holder := in.(type) {
	case map[string]any:
		before := len(holder)
		for name, v := range holder {
			if v == nil || dropEmpty(v) {
				delete(holder, name)
			}
		}
		return before > 0 && len(holder) == 0
	case []any:
		for _, v := range holder {
			dropEmpty(v)
		}
	}
	return false
}

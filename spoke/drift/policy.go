package drift

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/fieldpattern"
)

// Policy is the treatment of drift in the children of one MemberCache. The zero value
// corrects all drift.
type Policy struct {
	// Report suppresses the correction of drift.
	Report bool
	// Foreign is the treatment of fields that other managers add to the pod template.
	Foreign v1alpha1.ForeignAction
	// Ignore are the rules for fields that other managers can own.
	Ignore []Rule
	// Scalers are the ranges of the StatefulSet's autoscalers.
	Scalers []Range
}

// Rule allows a field manager to own fields. An empty part matches all.
type Rule struct {
	Kind, Path, Manager string
}

// Problem is an invalid rule: its index in the policy, its path, and the cause.
type Problem struct {
	Index int
	Path  string
	Err   error
}

// NewPolicy returns the drift policy of policies, without its invalid rules, and a Problem
// for each of these.
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

// Ignores reports whether a rule allows every manager to own a field.
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

// IgnoredFields returns the fields of the intent that another manager owns in the live object
// and can keep. An ignore rule allows that, or an autoscaler whose range includes the
// replicas. The hub applies every other field, also when its rule or its other manager
// no longer exists.
func (p *Policy) IgnoredFields(kind string, intentFields *Fields, live metav1.Object) *Fields {
	ignored := fieldpath.NewSet()
	scaled := p.scaled(kind, live)
	if len(p.Ignore) == 0 && !scaled {
		return ignored
	}
	entries := live.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if isOwn(entry) {
			continue
		}
		fieldsOf(entry).Intersection(intentFields).Iterate(func(field fieldpath.Path) {
			if canIgnore(field) && (p.ignores(kind, entry.Manager, field) || scaled && field.Equals(replicasPath)) {
				ignored.Insert(field.Copy())
			}
		})
	}
	return ignored
}

// canIgnore reports whether an intent is valid without a field. It needs the keys of its list
// items, the annotations by which the hub recognizes its children, and the label by which
// it watches them.
func canIgnore(field fieldpath.Path) bool {
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
	return !requiredFields.Has(field)
}

var requiredFields = fieldpath.NewSet(intentHashPath,
	fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner),
	fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelCacheCluster))

// RemoveFields returns an intent without the given fields. It does not change the intent.
func RemoveFields(t Typer, intent *unstructured.Unstructured, fields *Fields) (*unstructured.Unstructured, error) {
	value, err := t.ObjectToTyped(intent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s by its schema: %w", intent.GetKind(), intent.GetName(), err)
	}
	reduced, ok := value.RemoveItems(fields).AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s %s has no other fields than the removed ones", intent.GetKind(), intent.GetName())
	}
	// The result shares the remaining values with the intent.
	u := (&unstructured.Unstructured{Object: reduced}).DeepCopy()
	dropEmpty(u.Object)
	return u, nil
}

// dropEmpty removes the maps that a removal emptied, and reports whether in is such a map. An
// apply of null or {} would own the field and clear it. A map that was empty before stays.
func dropEmpty(in any) (emptied bool) {
	switch container := in.(type) {
	case map[string]any:
		before := len(container)
		for name, v := range container {
			if v == nil || dropEmpty(v) {
				delete(container, name)
			}
		}
		return before > 0 && len(container) == 0
	case []any:
		for _, v := range container {
			dropEmpty(v)
		}
	}
	return false
}

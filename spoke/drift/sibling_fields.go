package drift

import (
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// SiblingEdits returns the edits that restore drifted fields whose correction the API server
// rejected. They remove the mutually exclusive sibling fields: another handler of a
// probe, or minAvailable in addition to maxUnavailable.
//
// rejected are the fields that the API server named, such as
// "spec.template.spec.containers[0].readinessProbe.tcpSocket". SiblingEdits removes what the
// latest manager owns next to them, except for intentFields and fields that an ignore rule
// covers. It returns nil if no such sibling exists.
func (p *Policy) SiblingEdits(intent *unstructured.Unstructured, live metav1.Object, intentFields, drifted *Fields, rejected []string) []Edit {
	liveContent, ok := content(live)
	if !ok || drifted == nil {
		return nil
	}
	tops := topPaths(liveContent, drifted)
	siblings := p.siblings(intent.GetKind(), live, intentFields, parentPaths(tops, rejected))
	if siblings.Empty() {
		return nil
	}
	var edits []Edit
	siblings.Iterate(func(path fieldpath.Path) {
		if _, found := valueAt(liveContent, path); found {
			edits = append(edits, Edit{Pointer: pointer(liveContent, path)})
		}
	})
	for _, top := range tops {
		if desired, found := valueAt(intent.Object, top); found {
			edits = append(edits, Edit{Pointer: pointer(liveContent, top), Value: desired})
		}
	}
	return edits
}

// topPaths returns the path of each field, cut to the first element that the live object
// lacks.
func topPaths(liveContent map[string]any, fields *Fields) (tops []fieldpath.Path) {
	seen := NewFields()
	fields.Leaves().Iterate(func(path fieldpath.Path) {
		n := 1
		for n < len(path) {
			if _, found := valueAt(liveContent, path[:n]); !found {
				break
			}
			n++
		}
		if top := path[:n].Copy(); !seen.Has(top) {
			seen.Insert(top)
			tops = append(tops, top)
		}
	})
	return tops
}

var listIndex = regexp.MustCompile(`\[[^\]]*\]`)

// parentPaths returns, for each rejected field, the innermost struct of the spec that contains
// both the rejected field and one of the tops.
func parentPaths(tops []fieldpath.Path, rejected []string) []fieldpath.Path {
	var parents []fieldpath.Path
	for _, field := range rejected {
		rejectedNames := strings.Split(listIndex.ReplaceAllString(field, ""), ".")
		var innermost fieldpath.Path
		for _, top := range tops {
			parent := top[:len(top)-1]
			names := fieldNames(parent)
			contains := len(names) > 0 && names[0] == "spec" && len(names) <= len(rejectedNames) && slices.Equal(names, rejectedNames[:len(names)])
			if contains && len(parent) > len(innermost) {
				innermost = parent.Copy()
			}
		}
		if innermost != nil {
			parents = append(parents, innermost)
		}
	}
	return parents
}

// fieldNames returns the field names of a path, without the keys of list items.
func fieldNames(path fieldpath.Path) (names []string) {
	for _, e := range path {
		if e.FieldName != nil {
			names = append(names, *e.FieldName)
		}
	}
	return names
}

// siblings returns the fields of the parents that the latest manager owns and the intent
// does not contain. Managers with the same time count together.
func (p *Policy) siblings(kind string, live metav1.Object, intentFields *Fields, parents []fieldpath.Path) *Fields {
	latest, siblings := time.Time{}, NewFields()
	entries := live.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if isOwn(entry) || entry.Subresource != "" {
			continue
		}
		owned := NewFields()
		fieldsOf(entry).Iterate(func(path fieldpath.Path) {
			for _, parent := range parents {
				n := len(parent)
				if len(path) <= n || !path[:n].Equals(parent) || path[n].FieldName == nil {
					continue
				}
				sibling := path[:n+1]
				if !intentFields.Has(sibling) && subtree(intentFields, sibling).Empty() && !p.ignores(kind, entry.Manager, path) {
					owned.Insert(sibling.Copy())
				}
			}
		})
		at := timeOf(entry)
		switch {
		case owned.Empty() || at.Before(latest):
		case at.After(latest):
			latest, siblings = at, owned
		default:
			siblings = siblings.Union(owned)
		}
	}
	return siblings
}

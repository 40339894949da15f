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

// Edit is one change of a live object: the value at a JSON pointer (RFC 6901), nil to
// remove it.
type Edit struct {
	Pointer string
	Value   any
}

// SiblingEdits puts the missing fields back and removes what somebody put right beside them,
// such as another handler of a probe, or minAvailable beside maxUnavailable: an API server
// refuses both together. refused are the fields that it names, such as
// "spec.template.spec.containers[0].readinessProbe.tcpSocket". Removed is what the manager
// holds who came last to where they are, unless it is wanted, or kept by a rule. Nothing is
// given where nobody stands in the way.
func (p *Policy) SiblingEdits(intent *unstructured.Unstructured, live metav1.Object, wanted, missing *Fields, refused []string) []Edit {
	is, ok := content(live)
	if !ok || missing == nil {
		return nil
	}
	tops := topsOf(is, missing)
	crowding := p.crowding(intent.GetKind(), live, wanted, holders(tops, refused))
	if crowding.Empty() {
		return nil
	}
	var edits []Edit
	crowding.Iterate(func(path fieldpath.Path) {
		if _, there := at(is, path); there {
			edits = append(edits, Edit{Pointer: pointer(is, path)})
		}
	})
	for _, top := range tops {
		if value, found := at(intent.Object, top); found {
			edits = append(edits, Edit{Pointer: pointer(is, top), Value: value})
		}
	}
	return edits
}

// topsOf are the missing fields; of what is gone as a whole, its top.
func topsOf(is map[string]any, missing *Fields) (tops []fieldpath.Path) {
	seen := NewFields()
	missing.Leaves().Iterate(func(p fieldpath.Path) {
		n := 1
		for n < len(p) {
			if _, there := at(is, p[:n]); !there {
				break
			}
			n++
		}
		if top := p[:n].Copy(); !seen.Has(top) {
			seen.Insert(top)
			tops = append(tops, top)
		}
	})
	return tops
}

var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// holders are the structs of the spec that hold both a missing field and one that was
// refused: for each of these the innermost.
func holders(tops []fieldpath.Path, refused []string) []fieldpath.Path {
	var found []fieldpath.Path
	for _, field := range refused {
		names := strings.Split(indexes.ReplaceAllString(field, ""), ".")
		var inner fieldpath.Path
		for _, top := range tops {
			holder := top[:len(top)-1]
			is := fieldNames(holder)
			if len(is) > 0 && is[0] == "spec" && len(is) <= len(names) && slices.Equal(is, names[:len(is)]) && len(holder) > len(inner) {
				inner = holder.Copy()
			}
		}
		if inner != nil {
			found = append(found, inner)
		}
	}
	return found
}

// fieldNames of a path, without the keys of list items.
func fieldNames(p fieldpath.Path) (names []string) {
	for _, e := range p {
		if e.FieldName != nil {
			names = append(names, *e.FieldName)
		}
	}
	return names
}

// crowding are the fields of the holders that the manager has who came last.
func (p *Policy) crowding(kind string, live metav1.Object, wanted *Fields, holders []fieldpath.Path) *Fields {
	latest, found := time.Time{}, NewFields()
	entries := live.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if isOurs(e) || e.Subresource != "" {
			continue
		}
		theirs := NewFields()
		fieldsOf(e).Iterate(func(path fieldpath.Path) {
			for _, holder := range holders {
				n := len(holder)
				if len(path) <= n || !path[:n].Equals(holder) || path[n].FieldName == nil {
					continue
				}
				beside := path[:n+1]
				if !wanted.Has(beside) && under(wanted, beside).Empty() && !p.ignores(kind, e.Manager, path) {
					theirs.Insert(beside.Copy())
				}
			}
		})
		var when time.Time
		if e.Time != nil {
			when = e.Time.Time
		}
		switch {
		case theirs.Empty() || when.Before(latest):
		case when.After(latest):
			latest, found = when, theirs
		default:
			found = found.Union(theirs)
		}
	}
	return found
}

package orphans

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// child is a labelled object in a member.
type child struct {
	kind, namespace, name string
	uid                   types.UID
	mark                  string
}

func (c *child) String() string { return c.namespace + "/" + c.kind + "/" + c.name }

// owned tells the children that a MemberCache of this hub owns.
type owned struct {
	// marks by namespace, and the inventories' UIDs.
	marks map[[2]string]bool
	uids  map[types.UID]bool
}

// ownedBy takes the marks of the member's own MemberCaches, and the inventories of all: a
// cluster may be a member under two names, of which the other one looks after a child.
func ownedBy(caches []v1alpha1.MemberCache, member string) owned {
	o := owned{marks: map[[2]string]bool{}, uids: map[types.UID]bool{}}
	for i := range caches {
		mc := &caches[i]
		if mc.Spec.Cluster == member {
			o.marks[[2]string{mc.Namespace, render.OwnerMark(mc)}] = true
		}
		for _, e := range mc.Status.Inventory {
			o.uids[e.UID] = true
		}
	}
	return o
}

func (o owned) has(c *child) bool { return o.uids[c.uid] || o.marks[[2]string{c.namespace, c.mark}] }

// unowned gives the children that nobody owns, sorted.
func unowned(children []child, o owned) []child {
	var left []child
	for i := range children {
		if !o.has(&children[i]) {
			left = append(left, children[i])
		}
	}
	slices.SortFunc(left, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return left
}

// shown bounds the objects that a message names.
const shown = 12

// message names what was found, with the commands for it, by namespace.
func message(member string, left []child) string {
	first := left[:min(len(left), shown)]
	names := make([]string, 0, len(first))
	var spaces []string
	objects := map[string][]string{}
	for i := range first {
		c := &first[i]
		names = append(names, c.String())
		if objects[c.namespace] == nil {
			spaces = append(spaces, c.namespace)
		}
		objects[c.namespace] = append(objects[c.namespace], strings.ToLower(c.kind)+"/"+c.name)
	}
	more := ""
	if n := len(left) - len(first); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	var remove, release []string
	for _, ns := range spaces {
		list := strings.Join(objects[ns], " ")
		remove = append(remove, fmt.Sprintf("kubectl delete -n %s %s", ns, list))
		release = append(release, fmt.Sprintf("kubectl label -n %s %s %s-", ns, list, v1alpha1.LabelCacheCluster))
	}
	return fmt.Sprintf("%s with the label %s in %s belong to no MemberCache that this hub has for %s, so it does not look after them: %s%s. "+
		"They were left behind, or another hub made them. If no other hub does, remove them there: %s; or keep them and take the label off: %s",
		count(len(left)), v1alpha1.LabelCacheCluster, member, member, strings.Join(names, ", "), more, strings.Join(remove, "; "), strings.Join(release, "; "))
}

func count(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func childOf(kind string, o metav1.Object) child {
	return child{kind: kind, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), mark: o.GetAnnotations()[v1alpha1.AnnotationOwner]}
}

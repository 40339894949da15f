package orphans

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

// child is a labelled object in a member.
type child struct {
	kind, namespace, name string
	uid                   types.UID
	// owner is the value of the annotation AnnotationOwner.
	owner string
}

func newChild(kind string, o metav1.Object) child {
	return child{kind: kind, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), owner: o.GetAnnotations()[v1alpha1.AnnotationOwner]}
}

// String returns NAMESPACE/KIND/NAME.
func (c *child) String() string { return c.namespace + "/" + c.kind + "/" + c.name }

// owners identifies the children that a MemberCache of this hub owns.
type owners struct {
	// annotations holds pairs of a namespace and a value of AnnotationOwner.
	annotations map[[2]string]bool
	// uids are the UIDs in the inventories.
	uids map[types.UID]bool
}

// ownersOf returns the owner annotations of the MemberCaches of a member, and the
// inventories of all MemberCaches: a cluster may be a member under two names, and the
// MemberCache of the other name owns the child.
func ownersOf(caches []v1alpha1.MemberCache, member string) owners {
	o := owners{annotations: map[[2]string]bool{}, uids: map[types.UID]bool{}}
	for i := range caches {
		mc := &caches[i]
		if mc.Spec.Cluster == member {
			o.annotations[[2]string{mc.Namespace, children.OwnerMark(mc)}] = true
		}
		for _, e := range mc.Status.Inventory {
			o.uids[e.UID] = true
		}
	}
	return o
}

func (o owners) own(c *child) bool {
	return o.uids[c.uid] || o.annotations[[2]string{c.namespace, c.owner}]
}

// orphansOf returns the children without an owner, sorted.
func orphansOf(children []child, o owners) []child {
	var orphans []child
	for i := range children {
		if !o.own(&children[i]) {
			orphans = append(orphans, children[i])
		}
	}
	slices.SortFunc(orphans, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return orphans
}

// shownObjects bounds the objects that a message names.
const shownObjects = 12

// message returns the message of the condition. It names the orphans and has the commands
// that delete or release them, one per namespace.
func message(member string, orphans []child) string {
	first := orphans[:min(len(orphans), shownObjects)]
	names := make([]string, 0, len(first))
	var namespaces []string
	objects := map[string][]string{}
	for i := range first {
		c := &first[i]
		names = append(names, c.String())
		if objects[c.namespace] == nil {
			namespaces = append(namespaces, c.namespace)
		}
		objects[c.namespace] = append(objects[c.namespace], strings.ToLower(c.kind)+"/"+c.name)
	}
	more := ""
	if n := len(orphans) - len(first); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	var remove, release []string
	for _, ns := range namespaces {
		list := strings.Join(objects[ns], " ")
		remove = append(remove, fmt.Sprintf("kubectl delete -n %s %s", ns, list))
		release = append(release, fmt.Sprintf("kubectl label -n %s %s %s-", ns, list, v1alpha1.LabelCacheCluster))
	}
	return fmt.Sprintf("%s in %s with the label %s: no MemberCache of this hub owns %s: %s%s. "+
		"If no other hub owns them, delete them in the member: %s; or keep them and remove the label: %s",
		objectCount(len(orphans)), member, v1alpha1.LabelCacheCluster, pronoun(len(orphans)), strings.Join(names, ", "), more, strings.Join(remove, "; "), strings.Join(release, "; "))
}

func objectCount(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

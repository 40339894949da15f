package controller

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// abandonConsent is the value of the annotation AnnotationAbandon: the members that
// may be abandoned, whose children are then orphaned.
type abandonConsent struct {
	all     bool
	members []string
}

func abandonConsentOf(cc *v1alpha1.CacheCluster) abandonConsent {
	var c abandonConsent
	for name := range strings.SplitSeq(cc.Annotations[v1alpha1.AnnotationAbandon], ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "*":
			c.all = true
		default:
			c.members = append(c.members, name)
		}
	}
	slices.Sort(c.members)
	c.members = slices.Compact(c.members)
	return c
}

func (c abandonConsent) covers(member string) bool {
	return c.all || slices.Contains(c.members, member)
}

// planAbandon plans which of the removed MemberCaches, by member, are abandoned. It
// takes consent, an unreachable member, and an entry in the saved status: a manager that
// starts between the two writes must still know which children were orphaned.
func (p *plan) planAbandon(s *snapshot, removed map[string]*v1alpha1.MemberCache) {
	consent := abandonConsentOf(s.cacheCluster)
	recorded := map[string]bool{}
	for _, entry := range s.cacheCluster.Status.Abandoned {
		existing := removed[entry.Name]
		if !consent.covers(entry.Name) || p.placed(entry.Name) || existing != nil && !s.unreachable(entry.Name) {
			continue
		}
		recorded[entry.Name] = true
		p.summary.Abandoned = append(p.summary.Abandoned, entry)
		if existing != nil && existing.DeletionTimestamp != nil {
			p.abandon = append(p.abandon, existing)
		}
	}
	for name, mc := range removed {
		if !recorded[name] && mc.DeletionTimestamp != nil && consent.covers(name) && s.unreachable(name) {
			p.summary.Abandoned = append(p.summary.Abandoned, v1alpha1.AbandonedMember{Name: name, Children: childrenOf(mc), At: metav1.NewTime(s.now)})
		}
	}
	for _, name := range consent.members {
		if _, known := s.reachable[name]; !known && !recorded[name] && removed[name] == nil && p.entry(name) == nil {
			p.summary.AbandonUnknown = append(p.summary.AbandonUnknown, name)
		}
	}
}

func (p *plan) placed(member string) bool {
	entry := p.entry(member)
	return entry != nil && entry.Placed
}

// childrenOf returns the children in the inventory of a MemberCache, sorted.
func childrenOf(mc *v1alpha1.MemberCache) []string {
	var names []string
	for _, e := range mc.Status.Inventory {
		names = append(names, e.Kind+"/"+e.Name)
	}
	slices.Sort(names)
	return names
}

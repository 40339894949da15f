package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

// consent is what the annotation AnnotationAbandon of a CacheCluster says: which
// members may be let go with the children that they hold.
type consent struct {
	everyone bool
	members  []string
}

func consentOf(cc *v1alpha1.CacheCluster) consent {
	var c consent
	for name := range strings.SplitSeq(cc.Annotations[v1alpha1.AnnotationAbandon], ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "*":
			c.everyone = true
		default:
			c.members = append(c.members, name)
		}
	}
	slices.Sort(c.members)
	c.members = slices.Compact(c.members)
	return c
}

func (c consent) to(member string) bool { return c.everyone || slices.Contains(c.members, member) }

// letGo plans what the consent covers among the MemberCaches that are on their way
// out: leaving are those that no member is wanted for any more. A member is let go
// only once the status says so, so that what was left behind is known also to a
// manager that starts in between.
func (p *plan) letGo(s *snapshot, leaving map[string]*v1alpha1.MemberCache) {
	allowed := consentOf(s.cache)
	recorded := map[string]bool{}
	for _, entry := range s.cache.Status.Abandoned {
		existing := leaving[entry.Name]
		if !allowed.to(entry.Name) || p.placed(entry.Name) || existing != nil && !s.away(entry.Name) {
			continue
		}
		recorded[entry.Name] = true
		p.verdict.Abandoned = append(p.verdict.Abandoned, entry)
		if existing != nil && existing.DeletionTimestamp != nil {
			p.abandon = append(p.abandon, existing)
		}
	}
	for name, mc := range leaving {
		if !recorded[name] && mc.DeletionTimestamp != nil && allowed.to(name) && s.away(name) {
			p.verdict.Abandoned = append(p.verdict.Abandoned, v1alpha1.AbandonedMember{Name: name, Children: childrenOf(mc), At: metav1.NewTime(s.now)})
		}
	}
	for _, name := range allowed.members {
		if _, known := s.reachable[name]; !known && !recorded[name] && leaving[name] == nil && p.entry(name) == nil {
			p.verdict.AbandonUnknown = append(p.verdict.AbandonUnknown, name)
		}
	}
}

func (p *plan) placed(member string) bool {
	entry := p.entry(member)
	return entry != nil && entry.Placed
}

// away says that the hub knows that a member does not answer. One that was not
// probed yet is not known to be away.
func (s *snapshot) away(member string) bool {
	is, known := s.reachable[member]
	return !known || is == metav1.ConditionFalse
}

func childrenOf(mc *v1alpha1.MemberCache) []string {
	var names []string
	for _, e := range mc.Status.Inventory {
		names = append(names, e.Kind+"/"+e.Name)
	}
	slices.Sort(names)
	return names
}

// abandon lets a MemberCache go whose member does not answer.
func (r *Reconciler) abandon(ctx context.Context, cc *v1alpha1.CacheCluster, mc *v1alpha1.MemberCache) error {
	released := mc.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, released, client.MergeFromWithOptions(mc, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of MemberCache %s: %w", mc.Name, err)
	}
	if err == nil {
		note := status.LeftBehind(v1alpha1.AbandonedMember{Name: mc.Spec.Cluster, Children: childrenOf(mc)})
		r.Events.Record(r.Clock.Now(), reference(cc), events.Event{Warning: true, Reason: v1alpha1.ReasonAbandoned, Action: "Abandon", Note: note})
	}
	return nil
}

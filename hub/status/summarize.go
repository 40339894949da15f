package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Member is a member where the cache is placed, or that still has a MemberCache.
type Member struct {
	Name string
	// Placed reports whether the cache is to run in the member.
	Placed bool
	// Replicas and Revision are the desired ones.
	Replicas int32
	Revision string
	// Cache is the MemberCache, or nil if it does not exist yet.
	Cache *v1alpha1.MemberCache
	// Problem was found on the hub, such as a member that does not exist; nil if none.
	Problem *v1alpha1.Outcome
}

// Input is everything that a summary is computed from.
type Input struct {
	// Generation of the CacheCluster.
	Generation int64
	// Deleting reports whether the CacheCluster is being deleted.
	Deleting bool
	// Revision of the template before overrides.
	Revision string
	// Selector of the pods in a member.
	Selector string
	// Members in any order.
	Members []Member
	// PlacementProblem is why the placement is invalid, or empty.
	PlacementProblem string
	// NothingMatches is why the placement chose no member, or empty.
	NothingMatches string
	// Abandoned are the members whose children were orphaned.
	Abandoned []v1alpha1.AbandonedMember
	// AbandonUnknown are the names in the abandon annotation that are no members.
	AbandonUnknown []string
	// Now is the time of the reconcile.
	Now time.Time
}

// Summarize returns the status that follows from the input. Where nothing changed it
// is equal to the old one. It changes neither of its arguments.
func Summarize(old *v1alpha1.CacheClusterStatus, in Input) v1alpha1.CacheClusterStatus {
	status := *old.DeepCopy()
	status.ObservedGeneration = in.Generation
	status.Revision = in.Revision
	status.Selector = in.Selector
	status.Clusters = nil
	status.Abandoned = sortAbandoned(in.Abandoned)
	status.Replicas, status.ReadyReplicas = 0, 0

	in.Members = slices.SortedFunc(slices.Values(in.Members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i := range in.Members {
		m := &in.Members[i]
		entry := clusterStatus(m, clusterOf(old, m.Name), in.Now)
		status.Clusters = append(status.Clusters, entry)
		if m.Cache != nil {
			status.Replicas += m.Cache.Status.Replicas
		}
		if entry.State != v1alpha1.MemberUnreachable {
			status.ReadyReplicas += entry.ReadyReplicas
		}
	}
	counts := count(in.Members, status.Clusters)
	status.Members = fmt.Sprintf("%d/%d", counts.byState[v1alpha1.MemberReady], counts.placed)
	setConditions(&status, in, counts)
	if equality.Semantic.DeepEqual(*old, status) {
		return *old
	}
	return status
}

// clusterOf returns the entry of a member in a status, or nil.
func clusterOf(status *v1alpha1.CacheClusterStatus, name string) *v1alpha1.ClusterStatus {
	for i := range status.Clusters {
		if status.Clusters[i].Name == name {
			return &status.Clusters[i]
		}
	}
	return nil
}

// clusterStatus returns the entry of a member: what its MemberCache reports, or what
// the hub knows where there is no report about the current spec.
func clusterStatus(m *Member, old *v1alpha1.ClusterStatus, now time.Time) v1alpha1.ClusterStatus {
	entry := v1alpha1.ClusterStatus{Name: m.Name, Replicas: m.Replicas}
	if m.Cache != nil {
		report := &m.Cache.Status
		entry.Revision, entry.ReadyReplicas = report.Revision, report.ReadyReplicas
		entry.ObservedAt, entry.LastDrift = report.ObservedAt, report.LastDrift
		entry.OpenDrifts = report.OpenDrifts
		entry.State, entry.Outcome = report.State, *report.Outcome.DeepCopy()
	}
	override := func(state v1alpha1.MemberState, reason, message string) {
		entry.State, entry.Outcome = state, v1alpha1.Outcome{Reason: reason, Message: message}
	}
	switch {
	case m.Problem != nil:
		entry.State, entry.Outcome = v1alpha1.MemberBlocked, *m.Problem.DeepCopy()
	case m.Cache == nil:
		override(v1alpha1.MemberProgressing, v1alpha1.ReasonPending, "the MemberCache is being created")
	case m.Cache.DeletionTimestamp != nil || !m.Placed:
		if entry.State != v1alpha1.MemberDeleting {
			override(v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating, "the children are about to be deleted")
		}
		addAbandonHint(m.Cache, &entry.Outcome)
	case entry.State == "":
		override(v1alpha1.MemberProgressing, v1alpha1.ReasonPending, "the member has not reported a status yet")
	case outdated(m) && entry.State != v1alpha1.MemberUnreachable:
		override(v1alpha1.MemberProgressing, v1alpha1.ReasonPending, "the status of the member is for an older revision")
	}
	if entry.Since == nil {
		entry.Since = &metav1.Time{Time: now}
		if old != nil && old.State == entry.State && old.Reason == entry.Reason && old.Since != nil {
			entry.Since = old.Since
		}
	}
	return entry
}

// outdated reports whether the report is about an older spec of the MemberCache, or the
// MemberCache itself is about an older template.
func outdated(m *Member) bool {
	return m.Cache.Status.ObservedGeneration != m.Cache.Generation || m.Cache.Spec.Revision != m.Revision
}

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Member is one member that is placed or still holds children.
type Member struct {
	Name string
	// Placed: the cache is to run there.
	Placed bool
	// Replicas and Revision wanted there.
	Replicas int32
	Revision string
	// Cache is the member's MemberCache, or nil where there is none yet.
	Cache *v1alpha1.MemberCache
	// Problem found on the hub, such as a member that does not exist.
	Problem *v1alpha1.Outcome
}

// Input is all that a verdict rests on.
type Input struct {
	Generation int64
	Deleting   bool
	// Revision of the template before overrides.
	Revision string
	// Selector of the pods in a member.
	Selector string
	Members  []Member
	// PlacementProblem says what is wrong with the placement, or is empty.
	PlacementProblem string
	// NothingMatches says why the placement chose nobody, or is empty.
	NothingMatches string
	// Abandoned are the members in which children were left behind, and AbandonUnknown
	// those that the user named for it and that are none.
	Abandoned      []v1alpha1.AbandonedMember
	AbandonUnknown []string
	Now            time.Time
}

// Summarize gives the status that follows from the input; where nothing changed
// it is equal to the old one.
func Summarize(old *v1alpha1.CacheClusterStatus, in Input) v1alpha1.CacheClusterStatus {
	status := *old.DeepCopy()
	status.ObservedGeneration = in.Generation
	status.Revision = in.Revision
	status.Selector = in.Selector
	status.Clusters = nil
	status.Abandoned = sortedAbandoned(in.Abandoned)
	status.Replicas, status.ReadyReplicas = 0, 0

	in.Members = slices.SortedFunc(slices.Values(in.Members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	placed, ready := 0, 0
	for i := range in.Members {
		entry := clusterStatus(&in.Members[i], previous(old, in.Members[i].Name), in.Now)
		status.Clusters = append(status.Clusters, entry)
		if in.Members[i].Cache != nil {
			status.Replicas += in.Members[i].Cache.Status.Replicas
		}
		if entry.State != v1alpha1.MemberUnreachable {
			status.ReadyReplicas += entry.ReadyReplicas
		}
		if in.Members[i].Placed {
			placed++
			if entry.State == v1alpha1.MemberReady {
				ready++
			}
		}
	}
	status.Members = fmt.Sprintf("%d/%d", ready, placed)
	judge(&status, in, tally(in.Members, status.Clusters))
	if equality.Semantic.DeepEqual(*old, status) {
		return *old
	}
	return status
}

func previous(old *v1alpha1.CacheClusterStatus, name string) *v1alpha1.ClusterStatus {
	for i := range old.Clusters {
		if old.Clusters[i].Name == name {
			return &old.Clusters[i]
		}
	}
	return nil
}

// clusterStatus is a member's entry: what its MemberCache reports, or what the
// hub knows where there is no report about the present spec.
func clusterStatus(m *Member, before *v1alpha1.ClusterStatus, now time.Time) v1alpha1.ClusterStatus {
	entry := v1alpha1.ClusterStatus{Name: m.Name, Replicas: m.Replicas}
	if m.Cache != nil {
		report := m.Cache.Status
		entry.Revision, entry.ReadyReplicas = report.Revision, report.ReadyReplicas
		entry.ObservedAt, entry.LastDrift = report.ObservedAt, report.LastDrift
		entry.OpenDrifts = report.OpenDrifts
		entry.State, entry.Outcome = report.State, *report.Outcome.DeepCopy()
	}
	switch {
	case m.Problem != nil:
		entry.State, entry.Outcome = v1alpha1.MemberBlocked, *m.Problem.DeepCopy()
	case m.Cache == nil:
		entry.State = v1alpha1.MemberProgressing
		entry.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPending, Message: "the MemberCache is being created"}
	case m.Cache.DeletionTimestamp != nil || !m.Placed:
		if entry.State != v1alpha1.MemberDeleting {
			entry.State = v1alpha1.MemberDeleting
			entry.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonChildrenTerminating, Message: "the children are to be removed"}
		}
		wayOut(m.Cache, &entry.Outcome)
	case entry.State == "":
		entry.State = v1alpha1.MemberProgressing
		entry.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPending, Message: "nothing has been reported from the member yet"}
	case stale(m) && entry.State != v1alpha1.MemberUnreachable:
		entry.State = v1alpha1.MemberProgressing
		entry.Outcome = v1alpha1.Outcome{Reason: v1alpha1.ReasonPending, Message: "the member's report is about an older revision"}
	}
	if entry.Since == nil {
		entry.Since = &metav1.Time{Time: now}
		if before != nil && before.State == entry.State && before.Reason == entry.Reason && before.Since != nil {
			entry.Since = before.Since
		}
	}
	return entry
}

// stale: the report is about an older spec of the MemberCache, or the MemberCache
// itself is about an older template.
func stale(m *Member) bool {
	return m.Cache.Status.ObservedGeneration != m.Cache.Generation || m.Cache.Spec.Revision != m.Revision
}

// setCondition keeps the time of the last transition, with the reconcile's clock.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	if old := meta.FindStatusCondition(*conditions, c.Type); old == nil || old.Status != c.Status {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	meta.SetStatusCondition(conditions, c)
}

package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var (
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	earlier = metav1.NewTime(noon.Add(-time.Hour))
)

// report returns a MemberCache whose status is about its current spec, revision r1.
func report(state v1alpha1.MemberState, reason string, ready int32) *v1alpha1.MemberCache {
	return &v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       v1alpha1.MemberCacheSpec{Revision: "r1"},
		Status: v1alpha1.MemberCacheStatus{ObservedGeneration: 2, State: state, Revision: "r1", Replicas: 2, ReadyReplicas: ready,
			Outcome: v1alpha1.Outcome{Reason: reason, Message: "message of " + reason, Since: &earlier}},
	}
}

func ready() *v1alpha1.MemberCache {
	return report(v1alpha1.MemberReady, v1alpha1.ReasonPodsReady, 2)
}

func placed(name string, mc *v1alpha1.MemberCache) Member {
	return Member{Name: name, Placed: true, Replicas: 2, Revision: "r1", Cache: mc}
}

func input(members ...Member) Input {
	return Input{Generation: 3, Revision: "r1", Selector: "s", Members: members, Now: noon}
}

// statusAndReason returns "STATUS REASON" by condition type.
func statusAndReason(status v1alpha1.CacheClusterStatus) map[string]string {
	found := map[string]string{}
	for _, c := range status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason
	}
	return found
}

func TestSummarize_DerivesTheStateOfAMemberFromItsReport(t *testing.T) {
	stale, older, deleting := ready(), ready(), ready()
	stale.Generation = 3
	older.Spec.Revision = "r0"
	deleting.DeletionTimestamp = &earlier
	blank := ready()
	blank.Status = v1alpha1.MemberCacheStatus{}
	notPlaced := placed("a", ready())
	notPlaced.Placed = false
	problem := placed("a", ready())
	problem.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.memory"}
	unreachableAndStale := report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)
	unreachableAndStale.Generation = 3
	removing := report(v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating, 0)
	removing.DeletionTimestamp = &earlier
	for _, c := range []struct {
		name, why string
		member    Member
		state     v1alpha1.MemberState
		reason    string
	}{
		{"ready", "its report has this state", placed("a", ready()), v1alpha1.MemberReady, v1alpha1.ReasonPodsReady},
		{"no MemberCache yet", "there is no report", placed("a", nil), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"no status yet", "there is no report", placed("a", blank), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"a report about an older generation", "the older generation was ready", placed("a", stale), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"a MemberCache of an older revision", "the hub has not written the new one", placed("a", older), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"unreachable", "its report has this state", placed("a", report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)), v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable},
		{"unreachable with an older generation", "an unreachable member cannot report about the new one", placed("a", unreachableAndStale), v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable},
		{"a problem on the hub", "the member does not run the desired spec", problem, v1alpha1.MemberBlocked, v1alpha1.ReasonInvalidSpec},
		{"being deleted", "its pods are about to be deleted", placed("a", deleting), v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
		{"being deleted, reported", "the report names the remaining children", placed("a", removing), v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
		{"no longer placed", "its children are about to be deleted", notPlaced, v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := Summarize(&v1alpha1.CacheClusterStatus{}, input(c.member))
			entry := status.Clusters[0]
			if entry.State != c.state || entry.Reason != c.reason {
				t.Errorf("%s: %s (%s), want %s (%s)", c.why, entry.State, entry.Reason, c.state, c.reason)
			}
			if entry.Since.IsZero() || entry.Message == "" {
				t.Errorf("since %v, message %q", entry.Since, entry.Message)
			}
			isReady := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
			if isReady != (c.state == v1alpha1.MemberReady) {
				t.Errorf("%s: Ready is %t", c.why, isReady)
			}
			if c.state != v1alpha1.MemberReady && strings.HasPrefix(status.Members, "1/") {
				t.Errorf("%s: members %s", c.why, status.Members)
			}
		})
	}
}

func TestSummarize_DerivesTheConditionsFromAllMembers(t *testing.T) {
	progressing := report(v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, 1)
	degraded := report(v1alpha1.MemberDegraded, v1alpha1.ReasonPodsCrashing, 1)
	blocked := report(v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother, 0)
	unreachable := report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)
	unknown := placed("nowhere", nil)
	unknown.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonUnknownMember, Message: `"nowhere"`}
	removed := placed("b", ready())
	removed.Placed = false
	with := func(in Input, change func(*Input)) Input { change(&in); return in }
	for _, c := range []struct {
		name, why string
		in        Input
		want      map[string]string
		members   string
	}{
		{"all ready", "", input(placed("a", ready()), placed("b", ready())),
			map[string]string{"Ready": "True AllMembersReady", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "2/2"},
		{"one starting", "", input(placed("a", ready()), placed("b", progressing)),
			map[string]string{"Ready": "False MembersNotReady", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "1/2"},
		{"one degraded", "it does not recover without anyone acting, and no member is blocked", input(placed("a", ready()), placed("b", degraded)),
			map[string]string{"Ready": "False MembersDegraded", "Progressing": "False MembersSettled", "Degraded": "True MembersDegraded", "Placed": "True Placed"}, "1/2"},
		{"one blocked", "nothing progresses: kstatus shows Failed", input(placed("a", ready()), placed("b", blocked)),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "True Placed", "Stalled": "True MembersBlocked"}, "1/2"},
		{"one blocked, one starting", "a member progresses, so it is not stalled yet", input(placed("a", progressing), placed("b", blocked)),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "0/2"},
		{"one unreachable", "its state is unknown", input(placed("a", ready()), placed("b", unreachable)),
			map[string]string{"Ready": "Unknown MembersUnreachable", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "1/2"},
		{"one unreachable, one not ready", "not ready is known", input(placed("a", progressing), placed("b", unreachable)),
			map[string]string{"Ready": "False MembersNotReady", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "0/2"},
		{"an unknown member", "", input(placed("a", ready()), unknown),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False UnknownMembers", "Stalled": "True MembersBlocked"}, "1/2"},
		{"one removed", "the placed members are ready; it progresses until the other is removed", input(placed("a", ready()), removed),
			map[string]string{"Ready": "True AllMembersReady", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "1/1"},
		{"no member matches", "a cache without members is not ready", with(input(), func(in *Input) { in.NothingMatches = "spec.placement matches no member" }),
			map[string]string{"Ready": "False NoMatchingMembers", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False NoMatchingMembers", "Stalled": "True NoMatchingMembers"}, "0/0"},
		{"an invalid placement", "the members do not run the desired spec", with(input(placed("a", ready())), func(in *Input) { in.PlacementProblem = "spec.placement.clusterSelector" }),
			map[string]string{"Ready": "False InvalidPlacement", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False InvalidPlacement", "Stalled": "True InvalidPlacement"}, "1/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := Summarize(&v1alpha1.CacheClusterStatus{}, c.in)
			if diff := cmp.Diff(c.want, statusAndReason(status)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if status.Members != c.members {
				t.Errorf("members %s, want %s", status.Members, c.members)
			}
			for _, condition := range status.Conditions {
				if condition.ObservedGeneration != 3 || condition.Message == "" || condition.LastTransitionTime.IsZero() {
					t.Errorf("condition %+v", condition)
				}
			}
		})
	}
}

func TestSummarize_IsNeverReadyDuringDeletion(t *testing.T) {
	removed := placed("a", ready())
	removed.Placed = false
	in := input(removed)
	in.Deleting = true
	got := statusAndReason(Summarize(&v1alpha1.CacheClusterStatus{}, in))
	if got["Ready"] != "False Deleting" || got["Stalled"] != "" || got["Reconciling"] == "" {
		t.Errorf("conditions %v", got)
	}
}

func TestSummarize_IgnoresTheOrderOfMembers(t *testing.T) {
	members := []Member{placed("c", ready()), placed("a", nil), placed("b", report(v1alpha1.MemberBlocked, "X", 0)), placed("d", report(v1alpha1.MemberUnreachable, "Y", 1))}
	want := Summarize(&v1alpha1.CacheClusterStatus{}, input(slices.Clone(members)...))
	for range members {
		members = append(members[1:], members[0])
		if diff := cmp.Diff(want, Summarize(&v1alpha1.CacheClusterStatus{}, input(slices.Clone(members)...))); diff != "" {
			t.Fatalf("the status depends on the order:\n%s", diff)
		}
	}
}

// The hub sees the event of its own write: a status that changed with the clock would
// be written without end.
func TestSummarize_IgnoresTheTimeWhileNothingChanges(t *testing.T) {
	in := input(placed("a", ready()), placed("b", nil), placed("c", report(v1alpha1.MemberUnreachable, "Y", 1)))
	first := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	in.Now = noon.Add(time.Hour)
	if diff := cmp.Diff(first, Summarize(&first, in)); diff != "" {
		t.Errorf("an hour later:\n%s", diff)
	}
}

func TestSummarize_SetsSinceWhenAMemberEntersAState(t *testing.T) {
	first := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", nil)))
	late := input(placed("a", nil))
	late.Members[0].Problem = &v1alpha1.Outcome{Reason: v1alpha1.ReasonInvalidSpec}
	late.Now = noon.Add(time.Hour)
	second := Summarize(&first, late)
	if got := second.Clusters[0].Since.Time; !got.Equal(late.Now) {
		t.Errorf("since %s, want %s", got, late.Now)
	}
	if got := first.Clusters[0].Since.Time; !got.Equal(noon) {
		t.Errorf("the old status was changed: since %s", got)
	}
}

func TestSummarize_ChangesTheTransitionTimeWithTheStatusOnly(t *testing.T) {
	first := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", nil)))
	in := input(placed("a", report(v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, 0)))
	in.Now = noon.Add(time.Minute)
	second := Summarize(&first, in)
	if got := meta.FindStatusCondition(second.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Time.Equal(noon) {
		t.Errorf("Ready stayed False, and its time became %s", got)
	}
	in = input(placed("a", ready()))
	in.Now = noon.Add(2 * time.Minute)
	third := Summarize(&second, in)
	if got := meta.FindStatusCondition(third.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Time.Equal(in.Now) {
		t.Errorf("Ready became True at %s, want %s", got, in.Now)
	}
}

func TestSummarize_ExcludesReadyReplicasOfUnreachableMembers(t *testing.T) {
	status := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", ready()), placed("b", report(v1alpha1.MemberUnreachable, "Y", 2))))
	if status.ReadyReplicas != 2 || status.Replicas != 4 {
		t.Errorf("ready %d of %d", status.ReadyReplicas, status.Replicas)
	}
}

func TestSummarize_NamesThreeMembersInAMessageAndCountsTheOthers(t *testing.T) {
	var members []Member
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		members = append(members, placed(name, report(v1alpha1.MemberBlocked, "X", 0)))
	}
	status := Summarize(&v1alpha1.CacheClusterStatus{}, input(members...))
	want := "0 of 5 members ready; a: message of X; b: message of X; c: message of X; and 2 more (see status.clusters)"
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestSummarize_ExplainsAReadyConditionThatIsFalse(t *testing.T) {
	in := input(placed("a", ready()))
	in.PlacementProblem = "spec.placement.clusterSelector: no"
	status := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message; got != in.PlacementProblem {
		t.Errorf("message %q", got)
	}
}

func TestSummarize_UsesTheSingularForOneMember(t *testing.T) {
	alone := report(v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, 0)
	status := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", alone)))
	for kind, want := range map[string]string{
		v1alpha1.ConditionPlaced: "1 member chosen", v1alpha1.ConditionProgressing: "1 member progressing",
		v1alpha1.ConditionReady: "0 of 1 member ready; a: message of PodsStarting",
	} {
		if got := meta.FindStatusCondition(status.Conditions, kind).Message; got != want {
			t.Errorf("%s has the message %q, want %q", kind, got, want)
		}
	}
}

// A member that is retried changes its own entry and no other one.
func TestSummarize_ChangesOnlyTheEntryOfTheMemberThatIsRetried(t *testing.T) {
	blocked := report(v1alpha1.MemberBlocked, v1alpha1.ReasonQuotaExceeded, 0)
	blocked.Status.Class, blocked.Status.Attempt, blocked.Status.RetryAt = v1alpha1.ClassBlocked, 3, &metav1.Time{Time: noon.Add(20 * time.Second)}
	in := input(placed("a", ready()), placed("b", blocked), placed("c", nil))
	first := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	if got := first.Clusters[1]; got.Attempt != 3 || got.RetryAt == nil || got.Class != v1alpha1.ClassBlocked {
		t.Errorf("entry %+v", got)
	}
	again := blocked.DeepCopy()
	again.Status.Attempt, again.Status.RetryAt = 4, &metav1.Time{Time: noon.Add(time.Minute)}
	in = input(placed("a", ready()), placed("b", again), placed("c", nil))
	in.Now = noon.Add(20 * time.Second)
	second := Summarize(&first, in)
	want := first.DeepCopy()
	want.Clusters[1].Attempt, want.Clusters[1].RetryAt = 4, again.Status.RetryAt
	if diff := cmp.Diff(*want, second); diff != "" {
		t.Errorf("more than attempt and retryAt changed (-want +got):\n%s", diff)
	}
	over := Summarize(&second, input(placed("a", ready()), placed("b", ready()), placed("c", nil)))
	if got := over.Clusters[1]; got.Attempt != 0 || got.RetryAt != nil || got.Class != "" {
		t.Errorf("the failure is over, and the entry is %+v", got)
	}
}

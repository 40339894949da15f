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

// report is a MemberCache whose status is about its present spec, revision r1.
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

func words(status v1alpha1.CacheClusterStatus) map[string]string {
	found := map[string]string{}
	for _, c := range status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason
	}
	return found
}

func TestAMemberIsWhatItsReportSaysAndNothingThatItDoesNotSay(t *testing.T) {
	stale, older, deleting := ready(), ready(), ready()
	stale.Generation = 3
	older.Spec.Revision = "r0"
	deleting.DeletionTimestamp = &earlier
	blank := ready()
	blank.Status = v1alpha1.MemberCacheStatus{}
	unplaced := placed("a", ready())
	unplaced.Placed = false
	problem := placed("a", ready())
	problem.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.memory"}
	awayAndStale := report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)
	awayAndStale.Generation = 3
	removing := report(v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating, 0)
	removing.DeletionTimestamp = &earlier
	for _, c := range []struct {
		name, why string
		member    Member
		state     v1alpha1.MemberState
		reason    string
	}{
		{"ready", "its report says so", placed("a", ready()), v1alpha1.MemberReady, v1alpha1.ReasonPodsReady},
		{"no MemberCache yet", "there is no report", placed("a", nil), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"not looked at yet", "there is no report", placed("a", blank), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"a report about an older generation", "ready was the older one", placed("a", stale), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"a MemberCache of an older revision", "the hub has not written the new one", placed("a", older), v1alpha1.MemberProgressing, v1alpha1.ReasonPending},
		{"unreachable", "its report says so", placed("a", report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)), v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable},
		{"unreachable with an older generation", "it can't report about the new one", placed("a", awayAndStale), v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable},
		{"a problem on the hub", "what the member runs is not what is asked for", problem, v1alpha1.MemberBlocked, v1alpha1.ReasonInvalidSpec},
		{"being deleted", "ready pods are on their way out", placed("a", deleting), v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
		{"being deleted, reported", "the report names what is left", placed("a", removing), v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
		{"no longer placed", "its children are to go", unplaced, v1alpha1.MemberDeleting, v1alpha1.ReasonChildrenTerminating},
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

func TestConditionsFollowFromAllMembers(t *testing.T) {
	progressing := report(v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, 1)
	degraded := report(v1alpha1.MemberDegraded, v1alpha1.ReasonPodsCrashing, 1)
	blocked := report(v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother, 0)
	away := report(v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable, 2)
	unknown := placed("nowhere", nil)
	unknown.Problem = &v1alpha1.Outcome{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonUnknownMember, Message: `"nowhere"`}
	leaving := placed("b", ready())
	leaving.Placed = false
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
		{"one failing", "it will not get better by waiting, and nobody is blocked", input(placed("a", ready()), placed("b", degraded)),
			map[string]string{"Ready": "False MembersDegraded", "Progressing": "False MembersSettled", "Degraded": "True MembersDegraded", "Placed": "True Placed"}, "1/2"},
		{"one blocked", "nothing moves: kstatus reads Failed", input(placed("a", ready()), placed("b", blocked)),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "True Placed", "Stalled": "True MembersBlocked"}, "1/2"},
		{"one blocked, one starting", "something moves, so it is not stalled yet", input(placed("a", progressing), placed("b", blocked)),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "0/2"},
		{"one away", "nobody knows", input(placed("a", ready()), placed("b", away)),
			map[string]string{"Ready": "Unknown MembersUnreachable", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "1/2"},
		{"one away, one known not to be ready", "then it is known", input(placed("a", progressing), placed("b", away)),
			map[string]string{"Ready": "False MembersNotReady", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "0/2"},
		{"one that does not exist", "", input(placed("a", ready()), unknown),
			map[string]string{"Ready": "False MembersBlocked", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False UnknownMembers", "Stalled": "True MembersBlocked"}, "1/2"},
		{"one leaving", "those that stay are ready; it moves until the other is gone", input(placed("a", ready()), leaving),
			map[string]string{"Ready": "True AllMembersReady", "Progressing": "True MembersProgressing", "Reconciling": "True MembersProgressing", "Degraded": "False MembersHealthy", "Placed": "True Placed"}, "1/1"},
		{"nobody", "an empty cache is not ready", with(input(), func(in *Input) { in.NothingMatches = "spec.placement matches nobody" }),
			map[string]string{"Ready": "False NoMatchingMembers", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False NoMatchingMembers", "Stalled": "True NoMatchingMembers"}, "0/0"},
		{"a placement that can't be read", "what runs there is not what is asked for", with(input(placed("a", ready())), func(in *Input) { in.PlacementProblem = "spec.placement.clusterSelector" }),
			map[string]string{"Ready": "False InvalidPlacement", "Progressing": "False MembersSettled", "Degraded": "False MembersHealthy", "Placed": "False InvalidPlacement", "Stalled": "True InvalidPlacement"}, "1/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := Summarize(&v1alpha1.CacheClusterStatus{}, c.in)
			if diff := cmp.Diff(c.want, words(status)); diff != "" {
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

func TestACacheThatIsBeingDeletedIsNeverReady(t *testing.T) {
	leaving := placed("a", ready())
	leaving.Placed = false
	in := input(leaving)
	in.Deleting = true
	got := words(Summarize(&v1alpha1.CacheClusterStatus{}, in))
	if got["Ready"] != "False Deleting" || got["Stalled"] != "" || got["Reconciling"] == "" {
		t.Errorf("conditions %v", got)
	}
}

func TestTheOrderOfMembersDoesNotShow(t *testing.T) {
	members := []Member{placed("c", ready()), placed("a", nil), placed("b", report(v1alpha1.MemberBlocked, "X", 0)), placed("d", report(v1alpha1.MemberUnreachable, "Y", 1))}
	want := Summarize(&v1alpha1.CacheClusterStatus{}, input(slices.Clone(members)...))
	for range members {
		members = append(members[1:], members[0])
		if diff := cmp.Diff(want, Summarize(&v1alpha1.CacheClusterStatus{}, input(slices.Clone(members)...))); diff != "" {
			t.Fatalf("another order, another status:\n%s", diff)
		}
	}
}

// The hub sees the event of its own write; a status that changed with the clock
// would be written for ever.
func TestSummarizingTheSameAgainChangesNothingHoweverLate(t *testing.T) {
	in := input(placed("a", ready()), placed("b", nil), placed("c", report(v1alpha1.MemberUnreachable, "Y", 1)))
	first := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	in.Now = noon.Add(time.Hour)
	if diff := cmp.Diff(first, Summarize(&first, in)); diff != "" {
		t.Errorf("an hour later:\n%s", diff)
	}
}

func TestAMemberThatEntersAStateEntersItNow(t *testing.T) {
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

func TestATransitionTimeIsThatOfTheTransition(t *testing.T) {
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

func TestReadyReplicasOfMembersThatDoNotAnswerDoNotCount(t *testing.T) {
	status := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", ready()), placed("b", report(v1alpha1.MemberUnreachable, "Y", 2))))
	if status.ReadyReplicas != 2 || status.Replicas != 4 {
		t.Errorf("ready %d of %d", status.ReadyReplicas, status.Replicas)
	}
}

func TestAMessageNamesThreeMembersAndCountsTheRest(t *testing.T) {
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

func TestAReadyConditionThatIsFalseNeverSaysThatAllIsWell(t *testing.T) {
	in := input(placed("a", ready()))
	in.PlacementProblem = "spec.placement.clusterSelector: no"
	status := Summarize(&v1alpha1.CacheClusterStatus{}, in)
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message; got != in.PlacementProblem {
		t.Errorf("message %q", got)
	}
}

func TestOneMemberIsOneMember(t *testing.T) {
	alone := report(v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting, 0)
	status := Summarize(&v1alpha1.CacheClusterStatus{}, input(placed("a", alone)))
	for kind, want := range map[string]string{
		v1alpha1.ConditionPlaced: "1 member chosen", v1alpha1.ConditionProgressing: "1 member changing",
		v1alpha1.ConditionReady: "0 of 1 member ready; a: message of PodsStarting",
	} {
		if got := meta.FindStatusCondition(status.Conditions, kind).Message; got != want {
			t.Errorf("%s says %q, want %q", kind, got, want)
		}
	}
}

// A member that is tried again and again writes its own entry and no other one's.
func TestATryMoreInOneMemberChangesItsEntryOnly(t *testing.T) {
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
		t.Errorf("more than the tries changed (-want +got):\n%s", diff)
	}
	over := Summarize(&second, input(placed("a", ready()), placed("b", ready()), placed("c", nil)))
	if got := over.Clusters[1]; got.Attempt != 0 || got.RetryAt != nil || got.Class != "" {
		t.Errorf("it is over, and the entry is %+v", got)
	}
}

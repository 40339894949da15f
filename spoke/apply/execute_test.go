package apply

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// member holds objects, and fails to say whether it holds some others. What is
// applied it takes as it is: ownership and conflict are for the integration tests.
type member struct {
	client.Client
	holds  map[Key]*unstructured.Unstructured
	silent map[Key]bool
	mu     sync.Mutex
	// applied, and rehearsed as a dry run, in order.
	applied, rehearsed []string
	// checked are the names in what was sent.
	checked []string
	// mute: answers to what is applied are lost.
	mute bool
	// busy: whatever is applied is answered with 429, and to come again later.
	busy bool
	// refuses answers what is applied to these with 403.
	refuses map[Key]bool
	// old answers a Service with a version as Kubernetes 1.22 does.
	old bool
}

func (m *member) Get(_ context.Context, at client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	key := Key{Kind: object.GetObjectKind().GroupVersionKind(), Name: at.Name}
	resource := schema.GroupResource{Group: key.Kind.Group, Resource: key.Kind.Kind}
	if m.silent[key] {
		return apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", resource, at.Name, "etcd is electing", 0, true)
	}
	held, ok := m.holds[key]
	if !ok {
		return apierrors.NewNotFound(resource, at.Name)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(held.Object, object)
}

func (m *member) Scheme() *runtime.Scheme { return clientgoscheme.Scheme }

func (m *member) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sent metav1.PartialObjectMetadata
	if body, err := patch.Data(object); err == nil && json.Unmarshal(body, &sent) == nil {
		m.checked = append(m.checked, sent.Name)
	}
	key := Key{Kind: object.GetObjectKind().GroupVersionKind(), Name: object.GetName()}
	switch {
	case slices.Contains(options, client.PatchOption(client.DryRunAll)):
		m.rehearsed = append(m.rehearsed, key.String())
	default:
		m.applied = append(m.applied, key.String())
	}
	if m.old && key.Kind == render.ServiceKind && sent.ResourceVersion != "" {
		return apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if m.refuses[key] {
		return apierrors.NewForbidden(schema.GroupResource{Resource: key.Kind.Kind}, key.Name, errors.New("exceeded quota: few"))
	}
	if m.busy {
		return apierrors.NewTooManyRequests("slow down", 7)
	}
	if m.mute {
		return &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	}
	return nil
}

func applierTo(m *member) *Applier {
	return New(Options{Client: m, Namespace: "shop", EventTime: time.Now()})
}

func TestNothingIsCreatedThatCouldNotBeLookedUp(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory = inventoryOf(live)
	serviceKey := all[0].Key()
	// The cache shows neither; one lookup fails, and the other one finds a stranger's.
	foreign := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	foreign.SetUID("foreign")
	foreign.SetAnnotations(nil)
	delete(live, serviceKey)
	delete(live, budgetKey)
	m := &member{holds: map[Key]*unstructured.Unstructured{budgetKey: foreign}, silent: map[Key]bool{serviceKey: true}}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))

	if len(m.applied) > 0 {
		t.Errorf("applied %v: the API server never said that they are absent", m.applied)
	}
	var reasons []string
	for _, f := range report.Failures {
		reasons = append(reasons, f.Reason)
	}
	if diff := cmp.Diff([]string{v1alpha1.ReasonMemberError, v1alpha1.ReasonObjectOfAnother}, reasons); diff != "" {
		t.Errorf("reasons of the failures (-want +got):\n%s", diff)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: a child that could not be looked at is not gone", len(report.Inventory), len(before.Inventory))
	}
	if diff := cmp.Diff([]Key{serviceKey}, report.Unobserved); diff != "" {
		t.Errorf("not looked at (-want +got):\n%s", diff)
	}
}

// The memory of what was found must not outlive the object, whose end no event tells:
// the watch does not show what has lost our label.
func TestAnObjectThatIsGoneIsRememberedNoLonger(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory, before.DriftPolicy.Report = inventoryOf(live), true
	m := &member{holds: map[Key]*unstructured.Unstructured{budgetKey: live[budgetKey].(*unstructured.Unstructured)}}
	delete(live, budgetKey)
	applier := applierTo(m)
	applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
	if applier.writes.Latest(budgetKey, "shop", nil) == nil {
		t.Fatal("what was looked up is not remembered")
	}
	delete(m.holds, budgetKey)
	applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
	if found := applier.writes.Latest(budgetKey, "shop", nil); found != nil {
		t.Errorf("still remembered: %v", found)
	}
}

func TestAMemberThatAsksToComeAgainLaterIsSentNothingMore(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory = inventoryOf(live)
	m := &member{holds: map[Key]*unstructured.Unstructured{}, busy: true}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, Live{}, before, applier.writes.Memory(Live{})))

	if len(m.applied) != 1 {
		t.Errorf("applied %v, want the first child only", m.applied)
	}
	if len(report.Failures) != 1 || report.Failures[0].RetryAfter != 7*time.Second {
		t.Errorf("failures %v", report.Failures)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: a child that was not asked for is not gone", len(report.Inventory), len(before.Inventory))
	}
	if len(report.Unobserved) != len(all) {
		t.Errorf("not looked at: %v, want all: the first was not repaired, the others not come to", report.Unobserved)
	}
}

// Under a name of ours it could be another object that answers.
func TestTheSuccessorOfAChildIsCheckedUnderANameByChance(t *testing.T) {
	all := desired(t)
	m := &member{}
	applier := applierTo(m)
	for range 2 {
		if checked, err := applier.checkSuccessor(t.Context(), &Step{Desired: all[0], Action: Recreate}); err != nil || checked.Failure != nil {
			t.Fatal(err, checked.Failure)
		}
	}
	long := all[0]
	long.Intent = long.Intent.DeepCopy()
	long.Intent.SetName(strings.Repeat("x", 63))
	if checked, err := applier.checkSuccessor(t.Context(), &Step{Desired: long, Action: Recreate}); err != nil || checked.Failure != nil {
		t.Fatal(err, checked.Failure)
	}
	if m.checked[0] == m.checked[1] || !strings.HasPrefix(m.checked[0], "sessions-") || len(m.checked[2]) != 63 {
		t.Errorf("checked under %q", m.checked)
	}
	if all[0].Intent.GetName() != "sessions" {
		t.Errorf("the intent is now one of %s", all[0].Intent.GetName())
	}
}

// budgetGone is a cache that is there but for its PodDisruptionBudget, which somebody
// deleted.
func budgetGone(t *testing.T) (all []Desired, live, without Live, before Owner) {
	t.Helper()
	all = desired(t)
	live, before = liveOf(t, all), owner
	before.Inventory = inventoryOf(live)
	without = maps.Clone(live)
	delete(without, budgetKey)
	return all, live, without, before
}

func TestARepairThatFailedHasPutNothingRight(t *testing.T) {
	all, _, without, before := budgetGone(t)
	applier := applierTo(&member{holds: map[Key]*unstructured.Unstructured{}, mute: true})
	if report := applier.Apply(t.Context(), Decide(all, without, before, applier.writes.Memory(without))); !slices.Contains(report.Unobserved, budgetKey) {
		t.Errorf("not seen: %v, want the budget among them", report.Unobserved)
	}
}

// The cache may show a child of the predecessor, which was deleted a moment ago, or one
// on its way out that is gone: events can be late.
func TestTheHintOfARefusedRepairSendsToTheMemberOnlyWhereSomethingIsThere(t *testing.T) {
	all := desired(t)
	for name, c := range map[string]struct {
		step Step
		hint string
	}{
		"it was changed": {Step{Desired: all[1], Action: Correct, Live: applied(t, &all[1])}, "revert in the member"},
		"it was deleted": {Step{Desired: all[1], Action: Create, Deleted: true}, "change the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := &failure.Failure{Class: v1alpha1.ClassInvalid, Reason: v1alpha1.ReasonRejected, Hint: "change the spec"}
			result := applierTo(&member{}).refused(&owner, &c.step, failed)
			if !strings.HasPrefix(result.Failure.Hint, c.hint) || len(result.Remaining) != 1 || !result.Remaining[0].Refused {
				t.Errorf("hint %q, remaining drift %+v", result.Failure.Hint, result.Remaining)
			}
		})
	}
}

func TestWhatIsInTheWayIsLookedAtBeforeItIsTold(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	stranger := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	stranger.SetUID("foreign")
	stranger.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: "another/member-1"})
	leaving := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for name, c := range map[string]struct {
		shown  *unstructured.Unstructured
		there  bool
		begun  bool
		reason string
	}{
		"it is gone, a new cache":              {stranger, false, false, ""},
		"it is gone, a cache that is there":    {stranger, false, true, ""},
		"it is there, a new cache":             {stranger, true, false, v1alpha1.ReasonObjectOfAnother},
		"it is there, a cache that is there":   {stranger, true, true, v1alpha1.ReasonObjectOfAnother},
		"it has left, a new cache":             {leaving, false, false, ""},
		"it has left, a cache that is there":   {leaving, false, true, ""},
		"it is leaving, a new cache":           {leaving, true, false, v1alpha1.ReasonChildrenTerminating},
		"it is leaving, a cache that is there": {leaving, true, true, v1alpha1.ReasonChildrenTerminating},
	} {
		before, shown := owner, Live{}
		if c.begun {
			shown = maps.Clone(live)
			before.Inventory = slices.DeleteFunc(inventoryOf(live), func(e v1alpha1.InventoryEntry) bool { return e.Kind == budgetKey.Kind.Kind })
		}
		shown[budgetKey] = c.shown
		m := &member{holds: map[Key]*unstructured.Unstructured{}}
		if c.there {
			m.holds[budgetKey] = c.shown
		}
		applier := applierTo(m)
		report := applier.Apply(t.Context(), Decide(all, shown, before, applier.writes.Memory(shown)))
		reason := ""
		if worst := report.PrimaryFailure(); worst != nil {
			reason = worst.Reason
		}
		applied := slices.Contains(m.applied, "PodDisruptionBudget/sessions")
		if reason != c.reason || applied != (c.reason == "") {
			t.Errorf("%s: reason %q, want %q; applied %v", name, reason, c.reason, m.applied)
		}
	}
}

func TestUnderReportADeletedChildStaysDeletedAndIsNotForgotten(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory, before.DriftPolicy.Report = inventoryOf(live), true
	delete(live, budgetKey)
	m := &member{holds: map[Key]*unstructured.Unstructured{}}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))

	if len(m.applied) > 0 || len(report.Failures) > 0 {
		t.Errorf("applied %v, failures %v", m.applied, report.Failures)
	}
	if len(report.Remaining) != 1 || report.Remaining[0].Key != budgetKey || !report.Remaining[0].Deleted {
		t.Errorf("open: %+v", report.Remaining)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: without its entry the child would be new, and created", len(report.Inventory), len(before.Inventory))
	}
}

// The member made the child anew and its answer was lost: afterwards nothing is to be
// seen of the deletion, which is reported all the same, once.
func TestARepairWhoseAnswerWasLostIsReportedWhenItTurnsOutToHaveBeenMade(t *testing.T) {
	all, live, without, before := budgetGone(t)
	m := &member{holds: map[Key]*unstructured.Unstructured{}, mute: true}
	applier := applierTo(m)
	clock := time.Now()
	applier.now, applier.eventTime = func() time.Time { return clock }, clock
	lost := applier.Apply(t.Context(), Decide(all, without, before, applier.writes.Memory(without)))
	if len(lost.Failures) != 1 || len(lost.Changes) != 0 {
		t.Fatalf("failures %v, changes %v", lost.Failures, lost.Changes)
	}
	clock = clock.Add(time.Second)
	applier.eventTime = clock
	report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
	if len(report.Changes) != 1 || report.Changes[0].Key != budgetKey || !report.Changes[0].Deleted || report.Changes[0].Took != time.Second {
		t.Errorf("changes %+v, want the budget's, a second after its deletion was seen", report.Changes)
	}
	if report = applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live))); len(report.Changes) != 0 {
		t.Errorf("it is reported again: %+v", report.Changes)
	}
	if len(m.applied) != 1 {
		t.Errorf("applied %v", m.applied)
	}
}

// Whichever child a member refuses, it must not be left with the others.
func TestAMemberThatRefusesOneChildOfANewCacheGetsNone(t *testing.T) {
	all := desired(t)
	for i := range all {
		refused := all[i].Key()
		m := &member{holds: map[Key]*unstructured.Unstructured{}, refuses: map[Key]bool{refused: true}}
		applier := applierTo(m)
		report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))
		if len(m.applied) > 0 && !slices.Equal(m.applied, []string{refused.String()}) {
			t.Errorf("%s is refused, and applied was %v", refused, m.applied)
		}
		if len(report.Inventory) > 0 || len(report.Failures) != 1 {
			t.Errorf("%s is refused: inventory %v, failures %v", refused, report.Inventory, report.Failures)
		}
	}
}

func TestANewCacheBeginsWithItsStatefulSetOnceTheOthersWereRehearsed(t *testing.T) {
	all := desired(t)
	m := &member{holds: map[Key]*unstructured.Unstructured{}}
	applier := applierTo(m)
	report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))

	var wished, others, noted []string
	for i := range all {
		key := all[i].Key()
		wished = append(wished, key.String())
		if key.Kind != render.StatefulSetKind {
			others = append(others, key.String())
		}
	}
	for _, e := range report.Inventory {
		noted = append(noted, e.Kind+"/"+e.Name)
	}
	slices.Sort(m.rehearsed)
	if diff := cmp.Diff(slices.Sorted(slices.Values(others)), m.rehearsed); diff != "" {
		t.Errorf("rehearsed (-want +got):\n%s", diff)
	}
	if len(m.applied) == 0 || !strings.HasPrefix(m.applied[0], "StatefulSet/") {
		t.Errorf("applied %v, want the StatefulSet first", m.applied)
	}
	slices.Sort(m.applied)
	if diff := cmp.Diff(slices.Sorted(slices.Values(wished)), m.applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	// In another order, the next look would write the status again.
	if diff := cmp.Diff(wished, noted); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

func TestWhatWasChangedBackByHandIsTakenBackAndNotCalledDrift(t *testing.T) {
	all := desired(t)
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	for name, c := range map[string]struct {
		value   int64
		drifted bool
	}{"the value that was applied": {value: 1}, "another value": {value: 7, drifted: true}} {
		live := liveOf(t, all)
		live[setKey] = with(heldBy(t, applied(t, &all[1], replicas), "kubectl", replicas), c.value, "spec", "replicas")
		before := owner
		before.Inventory = inventoryOf(live)
		m := &member{holds: map[Key]*unstructured.Unstructured{}}
		applier := applierTo(m)
		report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
		if len(report.Changes) != 1 || report.Changes[0].Key != setKey || len(m.applied) == 0 {
			t.Fatalf("%s: changes %+v, applied %v", name, report.Changes, m.applied)
		}
		if got := report.Changes[0].Drifted(); got != c.drifted {
			t.Errorf("%s: drifted %t", name, got)
		}
	}
}

func TestAMemberThatTakesNoVersionForAServiceGetsItWithout(t *testing.T) {
	all := desired(t)
	m := &member{holds: map[Key]*unstructured.Unstructured{}, old: true}
	applier := applierTo(m)
	report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))
	if len(report.Failures) > 0 || len(report.Inventory) != len(all) {
		t.Errorf("failures %v, inventory %v", report.Failures, report.Inventory)
	}
	if len(m.rehearsed) < len(all) {
		t.Errorf("rehearsed %v: no Service was sent with a version first", m.rehearsed)
	}
}

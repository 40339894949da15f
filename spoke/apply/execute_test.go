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
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// member is a member that stores some objects and fails to read others. It does not track
// ownership and conflicts: the integration tests do.
type member struct {
	client.Client
	objects    map[Key]*unstructured.Unstructured
	unreadable map[Key]bool
	mu         sync.Mutex
	// applied and dryRun are the children that were applied, and sent as a dry run, in order.
	applied, dryRun []string
	// names are the names in the requests.
	names []string
	// mute is true where the answers to applies are lost.
	mute bool
	// busy is true where every apply is answered with 429 and a retry interval.
	busy bool
	// refuses are the children whose apply is answered with 403.
	refuses map[Key]bool
	// oldService is true where a Service with a version is answered as by Kubernetes 1.22.
	oldService bool
}

func (m *member) Get(_ context.Context, at client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	key := Key{Kind: object.GetObjectKind().GroupVersionKind(), Name: at.Name}
	resource := schema.GroupResource{Group: key.Kind.Group, Resource: key.Kind.Kind}
	if m.unreadable[key] {
		return apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", resource, at.Name, "etcd is electing", 0, true)
	}
	stored, ok := m.objects[key]
	if !ok {
		return apierrors.NewNotFound(resource, at.Name)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, object)
}

func (m *member) Scheme() *runtime.Scheme { return clientgoscheme.Scheme }

func (m *member) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sent metav1.PartialObjectMetadata
	if body, err := patch.Data(object); err == nil && json.Unmarshal(body, &sent) == nil {
		m.names = append(m.names, sent.Name)
	}
	key := Key{Kind: object.GetObjectKind().GroupVersionKind(), Name: object.GetName()}
	switch {
	case slices.Contains(options, client.PatchOption(client.DryRunAll)):
		m.dryRun = append(m.dryRun, key.String())
	default:
		m.applied = append(m.applied, key.String())
	}
	if m.oldService && key.Kind == children.ServiceKind && sent.ResourceVersion != "" {
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

func TestApply_CreatesNothingWithoutLiveRead(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory = inventoryOf(live)
	serviceKey := all[0].Key()
	// The cache shows neither child. One live read fails, the other finds another owner's object.
	foreign := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	foreign.SetUID("foreign")
	foreign.SetAnnotations(nil)
	delete(live, serviceKey)
	delete(live, budgetKey)
	m := &member{objects: map[Key]*unstructured.Unstructured{budgetKey: foreign}, unreadable: map[Key]bool{serviceKey: true}}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))

	if len(m.applied) > 0 {
		t.Errorf("applied %v, which the API server did not report as absent", m.applied)
	}
	var reasons []string
	for _, f := range report.Failures {
		reasons = append(reasons, f.Reason)
	}
	if diff := cmp.Diff([]string{v1alpha1.ReasonMemberError, v1alpha1.ReasonObjectOfAnother}, reasons); diff != "" {
		t.Errorf("reasons of the failures (-want +got):\n%s", diff)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: a child that could not be read may exist", len(report.Inventory), len(before.Inventory))
	}
	if diff := cmp.Diff([]Key{serviceKey}, report.Unobserved); diff != "" {
		t.Errorf("unobserved (-want +got):\n%s", diff)
	}
}

// The written object must not outlive the live one: the watch reports no deletion of an
// object without the label.
func TestApply_ForgetsWriteOfAbsentObject(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory, before.DriftPolicy.Report = inventoryOf(live), true
	m := &member{objects: map[Key]*unstructured.Unstructured{budgetKey: live[budgetKey].(*unstructured.Unstructured)}}
	delete(live, budgetKey)
	applier := applierTo(m)
	applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
	if applier.writes.Latest(budgetKey, "shop", nil) == nil {
		t.Fatal("the live object is not in the write cache")
	}
	delete(m.objects, budgetKey)
	applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))
	if found := applier.writes.Latest(budgetKey, "shop", nil); found != nil {
		t.Errorf("still in the write cache: %v", found)
	}
}

func TestApply_StopsAtMemberThatAsksForAPause(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory = inventoryOf(live)
	m := &member{objects: map[Key]*unstructured.Unstructured{}, busy: true}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, Live{}, before, applier.writes.Memory(Live{})))

	if len(m.applied) != 1 {
		t.Errorf("applied %v, want the first child only", m.applied)
	}
	if len(report.Failures) != 1 || report.Failures[0].RetryAfter != 7*time.Second {
		t.Errorf("failures %v", report.Failures)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: a child that was not read may exist", len(report.Inventory), len(before.Inventory))
	}
	if len(report.Unobserved) != len(all) {
		t.Errorf("unobserved: %v, want all: the first was not corrected, the others were not reached", report.Unobserved)
	}
}

// Under the name of the child, the API server would merge the successor with the child.
func TestResolve_ChecksSuccessorUnderRandomName(t *testing.T) {
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
	if m.names[0] == m.names[1] || !strings.HasPrefix(m.names[0], "sessions-") || len(m.names[2]) != 63 {
		t.Errorf("sent under %q", m.names)
	}
	if all[0].Intent.GetName() != "sessions" {
		t.Errorf("the intent is renamed to %s", all[0].Intent.GetName())
	}
}

// budgetGone returns an existing cache, and the same cache after another client deleted its
// PodDisruptionBudget.
func budgetGone(t *testing.T) (all []Desired, live, without Live, before Owner) {
	t.Helper()
	all = desired(t)
	live, before = liveOf(t, all), owner
	before.Inventory = inventoryOf(live)
	without = maps.Clone(live)
	delete(without, budgetKey)
	return all, live, without, before
}

func TestApply_FailedCorrectionIsUnobserved(t *testing.T) {
	all, _, without, before := budgetGone(t)
	applier := applierTo(&member{objects: map[Key]*unstructured.Unstructured{}, mute: true})
	if report := applier.Apply(t.Context(), Decide(all, without, before, applier.writes.Memory(without))); !slices.Contains(report.Unobserved, budgetKey) {
		t.Errorf("unobserved: %v, want the budget among them", report.Unobserved)
	}
}

func TestExecute_RefusedCorrectionHintsAtMemberOnlyForExistingChild(t *testing.T) {
	all := desired(t)
	for name, c := range map[string]struct {
		step Step
		hint string
	}{
		"a changed child": {Step{Desired: all[1], Action: Correct, Live: applied(t, &all[1])}, "revert in the member"},
		"a deleted child": {Step{Desired: all[1], Action: Create, Deleted: true}, "change the spec"},
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

// Events can be late: the cache may show a deleted child of the predecessor.
func TestResolve_ReadsObstructingObjectFromAPIServer(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	foreign := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	foreign.SetUID("foreign")
	foreign.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: "another/member-1"})
	terminating := live[budgetKey].(*unstructured.Unstructured).DeepCopy()
	terminating.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for name, c := range map[string]struct {
		cached  *unstructured.Unstructured
		present bool
		exists  bool
		reason  string
	}{
		"absent, a new cache":              {foreign, false, false, ""},
		"absent, an existing cache":        {foreign, false, true, ""},
		"present, a new cache":             {foreign, true, false, v1alpha1.ReasonObjectOfAnother},
		"present, an existing cache":       {foreign, true, true, v1alpha1.ReasonObjectOfAnother},
		"deleted, a new cache":             {terminating, false, false, ""},
		"deleted, an existing cache":       {terminating, false, true, ""},
		"being deleted, a new cache":       {terminating, true, false, v1alpha1.ReasonChildrenTerminating},
		"being deleted, an existing cache": {terminating, true, true, v1alpha1.ReasonChildrenTerminating},
	} {
		before, shown := owner, Live{}
		if c.exists {
			shown = maps.Clone(live)
			before.Inventory = slices.DeleteFunc(inventoryOf(live), func(e v1alpha1.InventoryEntry) bool { return e.Kind == budgetKey.Kind.Kind })
		}
		shown[budgetKey] = c.cached
		m := &member{objects: map[Key]*unstructured.Unstructured{}}
		if c.present {
			m.objects[budgetKey] = c.cached
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

func TestApply_ReportPolicyKeepsInventoryEntryOfDeletedChild(t *testing.T) {
	all := desired(t)
	live := liveOf(t, all)
	before := owner
	before.Inventory, before.DriftPolicy.Report = inventoryOf(live), true
	delete(live, budgetKey)
	m := &member{objects: map[Key]*unstructured.Unstructured{}}
	applier := applierTo(m)

	report := applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live)))

	if len(m.applied) > 0 || len(report.Failures) > 0 {
		t.Errorf("applied %v, failures %v", m.applied, report.Failures)
	}
	if len(report.Remaining) != 1 || report.Remaining[0].Key != budgetKey || !report.Remaining[0].Deleted {
		t.Errorf("remaining drift: %+v", report.Remaining)
	}
	if len(report.Inventory) != len(before.Inventory) {
		t.Errorf("inventory has %d entries, was %d: without its entry the child would be created as a new one", len(report.Inventory), len(before.Inventory))
	}
}

// The member created the child again and its answer was lost. No later read shows the
// deletion, and it is still reported once.
func TestApply_ReportsCorrectionWhoseAnswerWasLost(t *testing.T) {
	all, live, without, before := budgetGone(t)
	m := &member{objects: map[Key]*unstructured.Unstructured{}, mute: true}
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
		t.Errorf("changes %+v, want the budget's, a second after its deletion was observed", report.Changes)
	}
	if report = applier.Apply(t.Context(), Decide(all, live, before, applier.writes.Memory(live))); len(report.Changes) != 0 {
		t.Errorf("reported again: %+v", report.Changes)
	}
	if len(m.applied) != 1 {
		t.Errorf("applied %v", m.applied)
	}
}

// A member that refuses one child must not keep the others.
func TestApply_NewCacheGetsAllChildrenOrNone(t *testing.T) {
	all := desired(t)
	for i := range all {
		refused := all[i].Key()
		m := &member{objects: map[Key]*unstructured.Unstructured{}, refuses: map[Key]bool{refused: true}}
		applier := applierTo(m)
		report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))
		if len(m.applied) > 0 && !slices.Equal(m.applied, []string{refused.String()}) {
			t.Errorf("%s is refused, and %v were applied", refused, m.applied)
		}
		if len(report.Inventory) > 0 || len(report.Failures) != 1 {
			t.Errorf("%s is refused: inventory %v, failures %v", refused, report.Inventory, report.Failures)
		}
	}
}

func TestApply_NewCacheStartsWithStatefulSetAfterDryRuns(t *testing.T) {
	all := desired(t)
	m := &member{objects: map[Key]*unstructured.Unstructured{}}
	applier := applierTo(m)
	report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))

	var desiredKeys, others, noted []string
	for i := range all {
		key := all[i].Key()
		desiredKeys = append(desiredKeys, key.String())
		if key.Kind != children.StatefulSetKind {
			others = append(others, key.String())
		}
	}
	for _, e := range report.Inventory {
		noted = append(noted, e.Kind+"/"+e.Name)
	}
	slices.Sort(m.dryRun)
	if diff := cmp.Diff(slices.Sorted(slices.Values(others)), m.dryRun); diff != "" {
		t.Errorf("dry runs (-want +got):\n%s", diff)
	}
	if len(m.applied) == 0 || !strings.HasPrefix(m.applied[0], "StatefulSet/") {
		t.Errorf("applied %v, want the StatefulSet first", m.applied)
	}
	slices.Sort(m.applied)
	if diff := cmp.Diff(slices.Sorted(slices.Values(desiredKeys)), m.applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	// Another order would cause a status update at the next reconcile.
	if diff := cmp.Diff(desiredKeys, noted); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

func TestApply_ReclaimedFieldIsNoDrift(t *testing.T) {
	all := desired(t)
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	for name, c := range map[string]struct {
		value   int64
		drifted bool
	}{"the applied value": {value: 1}, "another value": {value: 7, drifted: true}} {
		live := liveOf(t, all)
		live[setKey] = with(ownedAlsoBy(t, applied(t, &all[1], replicas), "kubectl", replicas), c.value, "spec", "replicas")
		before := owner
		before.Inventory = inventoryOf(live)
		m := &member{objects: map[Key]*unstructured.Unstructured{}}
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

func TestApply_OmitsAbsentVersionWhereMemberRejectsIt(t *testing.T) {
	all := desired(t)
	m := &member{objects: map[Key]*unstructured.Unstructured{}, oldService: true}
	applier := applierTo(m)
	report := applier.Apply(t.Context(), Decide(all, Live{}, owner, applier.writes.Memory(Live{})))
	if len(report.Failures) > 0 || len(report.Inventory) != len(all) {
		t.Errorf("failures %v, inventory %v", report.Failures, report.Inventory)
	}
	if len(m.dryRun) < len(all) {
		t.Errorf("dry runs %v: no Service was sent with a version first", m.dryRun)
	}
}
